/** A coordinator whose PostgreSQL is lost, and whose standby is promoted: one that has all, and one that has not. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { fsck, openReader } from '../../src/trajectory/index.ts'
import { paddock } from '../cli/paddock.ts'
import { type Coordinator, coordinator, nodeArgs, started, stopped } from '../cli/running-nodes.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { startEngine, type EngineProcess } from '../proxy/support.ts'
import { type Claim, type Json, Trainer } from '../rl/trainer.ts'
import { handIns, judgeStorm, StormNode, stormHarness, stormRun, until } from '../torture/storm.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

const tasks = fileURLToPath(new URL('../../examples/tasks/terminal', import.meta.url))
let directory: string
let engine: EngineProcess
let server: PostgresServer
beforeAll(async () => {
  directory = tempDir()
  engine = await startEngine('--first-token-ms', '100')
  await writeFile(join(directory, 'one-call.mjs'), stormHarness)
})
afterEach(async () => {
  await stopped()
  await server.stop()
})
afterAll(async () => {
  await engine.kill()
})

async function begun(
  name: string,
  catalogue: string,
  leaseMs: number,
): Promise<{ readonly here: Coordinator; readonly file: readonly string[]; readonly nodes: readonly StormNode[] }> {
  const plugin = JSON.stringify(join(directory, 'one-call.mjs'))
  const config = `export default { nodes: { leaseMs: ${leaseMs} }, harnesses: { 'one-call': ${plugin} } }\n`
  const here = await coordinator(directory, name, config, '--engine', engine.url, '--catalogue', catalogue)
  const file = ['--config', join(directory, `${name}.config.mjs`)]
  const nodes = ['left', 'right'].map(async (which) => {
    const args = await nodeArgs(here, `${name}-${which}`, 4)
    return new StormNode([...args, ...file], join(directory, `hold-${name}-${which}`))
  })
  const all = await Promise.all(nodes)
  for (const node of all) node.start()
  await Promise.all(all.map(({ now }) => now.said('ready')))
  return { here, file, nodes: all }
}

it('over a synchronous standby that takes over, all goes on: each round settles once and nothing is lost', async () => {
  server = await startPostgres()
  const catalogue = await server.database()
  const standby = await server.follow({ synchronous: true })
  const { here, file, nodes } = await begun('sync', catalogue, 3000)
  const [names, n] = [['log-forensics', 'merge-conflict', 'slow-script', 'broken-build'], 32]
  const run = paddock([...stormRun(names, n), ...file, '--data', here.data, '--catalogue', catalogue])
  const handedIn = () => nodes.reduce((sum, node) => sum + node.count('handed_in'), 0)
  await until(() => handedIn() > 40)
  const [killed] = nodes
  await killed?.now.end('SIGKILL')
  killed?.start()
  await standby.promote()
  const ended = await run
  expect([ended.code, ended.err]).toEqual([0, ''])
  await until(() => nodes.every(({ held }) => held === 0))
  const tally = await handIns(here)
  await stopped()
  const folders = ['sync-left', 'sync-right'].map((name) => join(directory, name))
  const { all } = await judgeStorm({ data: here.data, catalogue }, { groups: names.length, n, nodes: folders })
  expect(tally).toMatchObject({ accepted: all.length })
  expect(JSON.parse(await readFile(join(here.data, 'catalogue.json'), 'utf8'))).toMatchObject({
    history: { timeline: 2, rewound: 0 },
  })
})

it('where the standby lacks what was committed the coordinator stops; its next start goes on, and nodes hand in again what was lost', async () => {
  server = await startPostgres()
  const catalogue = await server.database()
  const standby = await server.follow({ synchronous: false })
  // Nobody else claims what is lost before it is handed in again; a job that only the lost server knew is given anew behind this.
  const { here, file, nodes } = await begun('async', catalogue, 20_000)
  const token = (await readFile(join(here.data, 'control-token'), 'utf8')).trim()
  const trainer = new Trainer({ ready: { control: here.url } as never }, token)
  const submit = (...names: readonly string[]) =>
    trainer.ask('POST', '/runs/r/groups', {
      groups: names.map((group_id) => ({ group_id, task: 'log-forensics', n: 8, min_usable: 0 })),
    })
  const cursorAt = async (): Promise<string> => {
    const text = await (await trainer.send('GET', '/runs/r/events')).text()
    return (JSON.parse(text.trim().split('\n').at(-1) ?? '{}') as { cursor: string }).cursor
  }
  await trainer.ask('POST', '/runs', { run_id: 'r', tasks, harness: 'one-call' })
  await trainer.attach('r')
  // Claimed before the standby is cut off, and handed in behind that.
  const holding = nodes.map((node) => node.hold())
  await submit('before', 'over')
  const held = (await Promise.all(holding)).flat()
  const known = await cursorAt()
  await standby.cutOff()
  for (const node of nodes) await node.release()
  const handedIn = (job: string) =>
    nodes.some(({ now }) => now.lines.some((line) => line['type'] === 'handed_in' && line['job'] === job))
  await until(() => held.every(handedIn))
  await submit('never')
  const ahead = await cursorAt()
  expect(ahead).not.toBe(known)

  await standby.promote()
  expect(await here.process.end('SIGCONT')).not.toBe(0)
  const port = ['--control-port', new URL(here.url).port]
  const own = ['--data', here.data, ...file, '--engine', engine.url, '--catalogue', catalogue]
  const again = started(['coordinator', ...own, ...port])
  await again.said('ready')

  expect(await trainer.refused('GET', `/runs/r/events?after=${ahead}`)).toEqual([409, 'CURSOR_AHEAD'])
  await trainer.send('GET', `/runs/r/events?after=${known}`).then(({ status }) => expect(status).toBe(200))
  const incarnation = await trainer.attach('r')
  // It was told and never was: it is asked for anew.
  await submit('never')
  const settled: Claim[] = []
  while (settled.length < 3) settled.push(...(await trainer.claim('r', { wait_s: 60, incarnation } as Json)))
  expect(settled.map(({ group_id }) => group_id).toSorted()).toEqual(['before', 'never', 'over'])
  for (const { settled: of } of settled) expect(of).toMatchObject({ members: 8 })
  const taken = nodes.flatMap(({ now }) => now.lines.filter(({ detail = '' }) => detail.includes('again: it was lost')))
  expect(taken.length).toBeGreaterThan(0)
  await stopped()
  const store = await openReader(here.data, { catalogue })
  const completed = (await store.catalogue.rollouts({ runId: 'r' })).filter(({ end }) => end === 'completed')
  expect(new Set(completed.map(({ groupId, slot }) => `${groupId} ${slot}`)).size).toBe(24)
  expect(completed).toHaveLength(24)
  await store.close()
  // The log still has sessions of attempts that the catalogue lost and nobody could hand in again: they are told, and nothing else is.
  const { problems } = await fsck(here.data, { catalogue })
  expect(problems.filter(({ what }) => !what.startsWith('its rollout: NOT_FOUND'))).toEqual([])
})
