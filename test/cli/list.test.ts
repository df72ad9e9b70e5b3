/** What `paddock list` says of a store with more in it than it shows. */
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { runCli } from '../../src/cli/program.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { sessionFact } from '../../src/testing/store/facts.ts'
import { openStore, type RolloutView } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

let directory: string
let first: RolloutView
let newest: string
let newestSession: string
let taskName: string

beforeAll(async () => {
  directory = tempDir()
  await using store = await openStore(join(directory, 'data'))
  const { catalogue, recorder } = store
  const [id = ''] = await recordRollouts(store, [{ reward: 1 }])
  first = await catalogue.rollout(id)
  const [verdict] = first.verdicts
  if (verdict?.status !== 'scored') throw new Error('no verdict')
  const { runId, groupId, harness, taskDigest } = first
  taskName = (await catalogue.task(taskDigest)).name
  for (let slot = 1; slot < 25; slot += 1) {
    newest = newId()
    await catalogue.putRollout({ id: newest, runId, groupId, slot, attempt: 0, harness, createdAt: slot })
    await catalogue.endRollout(newest, 3, 'completed', '')
    // Ten more with a number; those without one are not zeros.
    if (slot < 11) await catalogue.appendVerdict({ ...verdict, id: newId(), rolloutId: newest, reward: 0 })
    const group = await catalogue.group(groupId)
    await catalogue.putGroup({ ...group, id: newId(), createdAt: slot })
    const session = sessionFact()
    newestSession = session.id
    await recorder.openSession(session)
  }
})

async function list(...args: readonly string[]): Promise<string> {
  const out: string[] = []
  const code = await runCli(['list', ...args, '--data', 'data'], {
    out: (text) => out.push(text),
    err: () => undefined,
    status: () => undefined,
    env: {},
    cwd: directory,
    colour: false,
    columns: null,
    signal: new AbortController().signal,
  })
  expect(code).toBe(0)
  return out.join('\n')
}

it('shows the newest rollouts first, with task and run, and says how many there are', async () => {
  const lines = (await list('rollouts')).split('\n')
  expect(lines[1]).toMatch(/^rollout +task +run +group/)
  expect(lines[2]).toContain(`${newest.slice(-8)}  ${taskName}  ${first.runId.slice(-8)}`)
  expect(lines.at(-1)).toBe('20 of 25; --limit 25 shows all')
  const all = await list('rollouts', '--limit', '25')
  expect(all.split('\n').at(-1)).toContain(first.id.slice(-8))
  expect(all).not.toContain('shows all')
  expect(await list('rollouts', '--run', first.runId, '--limit', '3')).toContain('3 of 25; --limit 25 shows all')
})

it('says in JSON too how many there are', async () => {
  const { rollouts, total } = JSON.parse(await list('rollouts', '--json'))
  expect(rollouts[0].id).toBe(newest)
  expect(total).toEqual({ rollouts: 25 })
})

it('names the task of groups, newest first', async () => {
  const text = await list('groups', '--limit', '2')
  expect(text).toMatch(/^group +run +task +prompt/m)
  expect(text.match(new RegExp(taskName, 'g'))).toHaveLength(2)
  expect(text).not.toContain(first.groupId.slice(-8))
  expect(text).toContain('2 of 25; --limit 25 shows all')
})

it('has the newest sessions first, those of rollouts or not', async () => {
  for (const kind of ['all', 'sessions'])
    expect(JSON.parse(await list(kind, '--limit', '2', '--json')).sessions[0].id).toBe(newestSession)
  expect(await list('sessions', '--limit', '2')).toContain('the newest 2; a greater --limit shows more')
})

it('counts the rollouts of runs, with their mean and those without a number', async () => {
  const text = await list('runs')
  expect(text).toMatch(/^run +started +rollouts +mean +no number +name/m)
  expect(text).toMatch(/ 25 +0\.0909 +14 /)
})
