/** Forks over nodes: whoever takes one is given the records that it goes on from, and no token of the family is trained twice. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it } from 'vitest'
import { openReader } from '../../src/trajectory/index.ts'
import { paddock } from '../cli/paddock.ts'
import { type Coordinator, coordinator, node, rollouts, stopped } from '../cli/running-nodes.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const task = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
const directory = tempDir()
afterEach(stopped)

/** A run that nodes do, to its end: the rollouts that are new. */
async function done({ data }: Coordinator, ...args: readonly string[]) {
  const before = new Set((await rollouts(data)).map(({ id }) => id))
  const ended = await paddock([...args, '--json', '--data', data])
  expect([ended.code, ended.err]).toEqual([0, ''])
  return (await rollouts(data)).filter(({ id }) => !before.has(id))
}

it('a fork is done by a node that has nothing of its parent, one of a fork by another after a kill, and each token is trained once', async () => {
  const kept = 'run: { snapshotEvery: 1, keepSnapshots: { most: 20, mostMb: 4000 } }'
  const config = `export default { nodes: { leaseMs: 3000 }, session: { pin: { seed: 7 } }, ${kept} }\n`
  const here = await coordinator(directory, 'here', config)
  const file = ['--config', join(directory, 'here.config.mjs')]
  const left = await node(here, 'left', 1, ...file)
  const [parent] = await done(here, 'run', task)
  expect(parent).toMatchObject({ end: 'completed', labels: { node: 'left' } })
  await left.end()

  const right = await node(here, 'right', 2, ...file)
  const children = await done(here, 'fork', parent?.id ?? '', '--at', '2', '--n', '2')
  expect(children.map(({ end, labels }) => [end, labels['node']])).toEqual([
    ['completed', 'right'],
    ['completed', 'right'],
  ])

  // A node is given what its job goes on from, and nothing else.
  const told = await paddock(['token', 'create', '--role', 'node', '--name', 'other', '--data', here.data])
  const own = await readFile(join(directory, 'right.token'), 'utf8')
  const { session } = await right.said('ready')
  const parents = `${here.url}/nodes/sessions/${session}/jobs/${parent?.id}/parents/${parent?.id}?token=1`
  for (const [token, status, code] of [
    [told.out, 403, 'NODE_NOT_YOURS'],
    [own, 404, 'NOT_FOUND'],
  ] as const) {
    const answer = await fetch(parents, { headers: { authorization: `Bearer ${token.trim()}` } })
    expect([answer.status, await answer.json()]).toMatchObject([status, { error: { code } }])
  }

  // One of a fork: its node is killed with it, and the first one, which has its own rollout alone, does it.
  const claims = right.lines.filter(({ type }) => type === 'claimed').length
  const further = done(here, 'fork', children[0]?.id ?? '', '--at', '2', '--n', '1')
  await expect.poll(() => right.lines.filter(({ type }) => type === 'claimed').length).toBeGreaterThan(claims)
  await right.end('SIGKILL')
  await node(here, 'left', 1, ...file)
  expect(await further).toMatchObject([{ end: 'completed', attempt: 1, labels: { node: 'left' } }])

  // The box that the first one kept is on its machine: the other one leaves what goes on from it to it.
  await node(here, 'third', 1, ...file)
  const [standing] = await done(here, 'fork', parent?.id ?? '', '--at', '2', '--n', '1', '--way', 'state')
  expect(standing).toMatchObject({ end: 'completed', labels: { node: 'left' } })
  await stopped()

  const out = join(directory, 'out')
  const exported = await paddock(['export', '--format', 'jsonl', '--out', out, '--data', here.data])
  expect([exported.code, exported.err]).toEqual([0, expect.anything()])
  const rows = (await readFile(join(out, 'rows.jsonl'), 'utf8')).trim().split('\n')
  const trained = rows
    .map((line) => (JSON.parse(line) as { readonly loss_mask: readonly number[] }).loss_mask)
    .reduce((sum, mask) => sum + mask.reduce((all, bit) => all + bit, 0), 0)

  const store = await openReader(here.data)
  const segments = []
  for (const { id } of await store.recorder.sessions({})) segments.push(...(await store.recorder.session(id)).segments)
  await store.close()
  const sampled = segments.filter(({ origin }) => origin === 'sampled')
  const originals = new Set(sampled.map(({ id }) => id))
  const replayed = segments.filter(({ origin, choice }) => origin === 'replayed' && choice !== null)
  expect(replayed.length).toBeGreaterThanOrEqual(4)
  for (const { replayOf } of replayed) expect(originals).toContain(replayOf)
  expect(trained).toBe(sampled.reduce((sum, { tokens }) => sum + tokens.length, 0))
  expect((await paddock(['fsck', '--data', here.data])).out).toContain('no problems')
})
