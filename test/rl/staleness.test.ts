/** A slow task while weights change after each fast one, under each mode of staleness: told from the rows of a real `paddock serve`. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { serve, type Serving } from '../cli/here.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { say as call, task, Trainer } from './trainer.ts'

let directory: string
let serving: Serving
let trainer: Trainer

beforeAll(async () => {
  directory = tempDir()
  const data = join(directory, 'data')
  serving = await serve(data)
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
})
afterAll(async () => {
  await serving.stop()
})

interface Seen {
  readonly task: 'slow' | 'fast'
  readonly usable: boolean
  readonly age: number
  readonly trained: number
}

/** Pushes weights after each of five fast groups, while one slow rollout has a turn under each weights. */
async function run(mode: string): Promise<{ readonly seen: readonly Seen[]; readonly gated: readonly number[] }> {
  const slow = `${mode}-slow`
  await trainer.ask('POST', '/runs', { run_id: mode, staleness: { max: 1, mode }, groups_per_step: 1 })
  await trainer.attach(mode)
  const seen: Seen[] = []
  const gated: number[] = []
  const train = async (step: number): Promise<void> => {
    for (const { group_id: group, claim_id: claim } of await trainer.claim(mode, { max_groups: 9 })) {
      const { rows, policy } = await trainer.rows(group, claim)
      for (const { usable, versions, trained_tokens_of: trained } of rows) {
        const oldest = Math.min(...versions.flatMap(([, , low = -1]) => (low === -1 ? [] : [low])))
        const age = (policy.version ?? 0) - oldest
        seen.push({ task: group === slow ? 'slow' : 'fast', usable, age, trained: trained.row })
      }
      await trainer.dispose(
        mode,
        rows.map(({ row_id: row, usable }) => ({ row, step, outcome: usable ? 'used' : 'stale' })),
      )
    }
  }
  const say = (version: number, phase: string) =>
    trainer.send('POST', `/runs/${mode}/policy`, {
      incarnation: 1,
      version,
      phase,
      ...(phase === 'live' ? { step: version > 1 ? version - 1 : null } : {}),
      label: `${mode}-${version}`,
    })
  await say(1, 'live')
  await trainer.ask('POST', `/runs/${mode}/groups`, { groups: [{ group_id: slow, task, n: 1 }] })
  const opened = await trainer.open(slow)
  const messages: { role: string; content: string }[] = []
  const goesOn = async () => (await trainer.ask('GET', `/rollouts/${opened.rollout_id}`))['end'] === null
  for (let version = 1; version <= 5; version += 1) {
    if (await goesOn()) {
      messages.push({ role: 'user', content: `turn ${version}` })
      messages.push(await call(opened, messages))
    }
    await trainer.settle(mode, `${mode}-fast-${version}`, [1], 1)
    await train(version)
    if ((await say(version + 1, 'pausing')).status === 409) {
      gated.push(version + 1)
      await trainer.end(opened.rollout_id, 1)
      await train(version)
      expect((await say(version + 1, 'pausing')).status).toBe(200)
    }
    expect((await say(version + 1, 'live')).status).toBe(200)
  }
  if (await goesOn()) await trainer.end(opened.rollout_id, 1)
  await train(6)
  await trainer.ask('POST', `/runs/${mode}/close`, {})
  return { seen, gated }
}
const ofTask = (seen: readonly Seen[], name: Seen['task']) => seen.filter((one) => one.task === name)

it('report trains the slow one, and its row says how old it is', async () => {
  const { seen, gated } = await run('report')
  expect(gated).toEqual([])
  expect(ofTask(seen, 'fast')).toHaveLength(5)
  expect(ofTask(seen, 'slow').map(({ age }) => age)).toEqual([5])
  for (const { usable, trained } of seen) expect([usable, trained > 0]).toEqual([true, true])
})

it('cancel stops the slow one before its rows are too old: it is never trained', async () => {
  const { seen } = await run('cancel')
  expect(ofTask(seen, 'slow')).toEqual([])
  expect(await trainer.ask('GET', '/rollouts/' + (await slowRollout('cancel')))).toMatchObject({
    end: 'cancelled',
    end_detail: 'stale: sampled under weights 1, and 3 are live',
  })
  expect(seen.filter(({ usable }) => usable).every(({ age }) => age <= 1)).toBe(true)
  expect(await trainer.ask('GET', '/runs/cancel')).toMatchObject({ counts: { done: 5, failed: 1 } })
})

it('gate waits for the slow one: it is trained, and no row is too old', async () => {
  const { seen, gated } = await run('gate')
  expect(gated).toEqual([3])
  expect(ofTask(seen, 'slow')).toMatchObject([{ usable: true, age: 1 }])
  for (const { usable, trained } of seen) expect([usable, trained > 0]).toEqual([true, true])
  expect(Math.max(...seen.map(({ age }) => age))).toBe(1)
  expect(await trainer.ask('GET', '/runs/gate')).toMatchObject({ staleness: { mode: 'gate' }, counts: { done: 6 } })
})

/** Of a round that failed: its rows may be read. */
async function slowRollout(mode: string): Promise<string> {
  const { members } = await trainer.rows(`${mode}-slow`, null)
  return members[0]?.rollout_id ?? ''
}
