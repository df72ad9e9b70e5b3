import { join } from 'node:path'
import Database from 'better-sqlite3'
import { beforeEach, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { newId, sha256 } from '../../core/index.ts'
import { salvage } from '../salvage/index.ts'
import { openReader, openStore } from '../store/index.ts'
import { fsck } from './index.ts'

let directory: string
let rollouts: string[]
beforeEach(async () => {
  directory = tempDir()
  rollouts = [newId(), newId()]
  await using store = await openStore(directory)
  const { catalogue } = store
  const task = {
    digest: sha256('t'),
    name: 't',
    environment: 'none',
    instruction: '',
    split: 'train',
    data: {},
    source: '',
  }
  const run = { id: newId(), name: 'r', createdAt: 1, config: {} }
  const group = { id: newId(), runId: run.id, taskDigest: task.digest, promptVariant: '', createdAt: 2 }
  await catalogue.putTask({ ...task, split: 'train' })
  await catalogue.putRun(run)
  await catalogue.putGroup(group)
  for (const [slot, id] of rollouts.entries()) {
    await catalogue.putRollout({ id, runId: run.id, groupId: group.id, slot, attempt: 0, harness: 'h', createdAt: 3 })
    await catalogue.startRollout(id, 4)
    await catalogue.endRollout(id, 5, 'completed', '')
    await catalogue.taint(id, 'engine')
    await catalogue.label(id, 'who', 'me')
    await catalogue.appendVerdict({
      id: newId(),
      rolloutId: id,
      at: 6,
      status: 'scored',
      reward: 0.25,
      components: {},
      steps: [],
      evidence: '',
      artifacts: [],
      verifier: { id: 'v', version: '1', sha256: sha256('v') },
      trust: 'host',
      by: 'verifier',
      costTokens: 0,
      supersedes: null,
    })
  }
})

/** Changes one row behind the store's back. */
function change(sql: string): void {
  const db = new Database(join(directory, 'catalogue.sqlite'))
  db.pragma('foreign_keys = OFF')
  expect(db.prepare(sql).run().changes).toBe(1)
  db.close()
}

describe('a catalogue', () => {
  it.each([
    ['a reward that was edited', "UPDATE verdicts SET record = replace(record, '0.25', '1.25') WHERE n = 1", true],
    ['a label that was edited', "UPDATE labels SET value = 'you' WHERE n = 1", true],
    ['an end that was edited', "UPDATE rollout_ends SET end = 'infra' WHERE rowid = 1", true],
    ['a verdict that is gone', 'DELETE FROM verdicts WHERE n = 1', false],
    ['a taint that is gone', 'DELETE FROM taints WHERE n = 1', false],
    ['an end that is gone', 'DELETE FROM rollout_ends WHERE rowid = 1', false],
  ])('tells %s, and salvage taints its rollout', async (_what, sql, read) => {
    expect((await fsck(directory)).problems).toEqual([])
    change(sql)
    const where = (await fsck(directory)).problems.map((problem) => problem.where)
    expect(where).toContain(`rollout ${rollouts[0]}`)
    expect(where).not.toContain(`rollout ${rollouts[1]}`)
    if (read) {
      await using reader = await openReader(directory)
      await expect(reader.catalogue.rollout(rollouts[0] ?? '')).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
    }
    const into = join(directory, 'salvaged')
    const report = await salvage(directory, into)
    expect(report.tainted).toEqual([rollouts[0]])
    await using reader = await openReader(into)
    expect((await reader.catalogue.rollout(rollouts[0] ?? '')).taints).toContain('store_damage')
    expect((await reader.catalogue.rollout(rollouts[1] ?? '')).taints).toEqual(['engine'])
    expect((await fsck(into)).problems).toEqual([])
  })
})
