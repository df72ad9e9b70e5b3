/**
 * A coordinator whose catalogue and queue are in PostgreSQL, and nodes in networks of their own, in a storm: nodes are killed, frozen and cut
 * off, clocks are wrong, and the server is killed in the middle.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { paddock } from '../cli/paddock.ts'
import { coordinator, nodeArgs, stopped } from '../cli/running-nodes.ts'
import { startEngine, type EngineProcess } from '../proxy/support.ts'
import { keepSection } from '../../scripts/keep-section.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { randomFrom } from '../torture/random.ts'
import { sized } from '../torture/size.ts'
import { handIns, judgeStorm, StormNode, stormHarness, stormRun, until } from '../torture/storm.ts'
import { NodeNetwork } from './node-network.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

const seed = Number(process.env['SEED'] ?? 20_261_126)
const names = [
  'archive-recovery',
  'broken-build',
  'data-wrangling',
  'git-archaeology',
  'log-forensics',
  'merge-conflict',
  'script-race',
  'slow-script',
]
const n = sized(512, 64)
const jobs = names.length * n
/** Of each kind: killed, frozen, cut off, with a wrong clock. */
const each = sized(2, 1)
const cutMs = sized(30_000, 10_000)
const leaseMs = sized(10_000, 2000)

let server: PostgresServer
let directory: string
let engine: EngineProcess
const networks: NodeNetwork[] = []
let cables = 0
beforeAll(async () => {
  server = await startPostgres()
  directory = tempDir()
  engine = await startEngine('--host', '0.0.0.0', '--first-token-ms', '150')
})
afterEach(stopped)
afterAll(async () => {
  for (const network of networks) network.close()
  await engine.kill()
  await server.stop()
})

it(
  `${jobs} jobs, ${4 * each} nodes, PostgreSQL killed twice, seed ${seed}: every round settles once, no job counts twice, nothing that ended is lost`,
  { timeout: sized(3_600_000, 900_000) },
  async () => {
    const random = randomFrom(seed)
    const catalogue = await server.database()
    const plugin = join(directory, 'one-call.mjs')
    await writeFile(plugin, stormHarness)
    const config = `export default { nodes: { leaseMs: ${leaseMs} }, harnesses: { 'one-call': ${JSON.stringify(plugin)} } }\n`
    const open = ['--control-host', '0.0.0.0', '--plain-http', '--catalogue', catalogue]
    const here = await coordinator(directory, 'here', config, '--engine', engine.url, ...open)
    const file = ['--config', join(directory, 'here.config.mjs')]
    const wrong = join(directory, 'wrong-clock.mjs')
    await writeFile(wrong, `const now = Date.now\nDate.now = () => now() + 7 * 60_000\n`)

    const folders: string[] = []
    const made = async (kind: string, env = {}) =>
      Promise.all(
        Array.from({ length: each }, async (_, at) => {
          cables += 1
          const network = await NodeNetwork.open(cables)
          networks.push(network)
          const name = `${kind}-${at}`
          folders.push(join(directory, name))
          const seen = (url: string): string => `http://${network.host}:${new URL(url).port}`
          const own = await nodeArgs({ ...here, url: seen(here.url) }, name, 8)
          const args = [...own, ...file, '--plain-http', '--engine', seen(engine.url)]
          const node = new StormNode(args, join(directory, `hold-${name}`), { env, through: network.through })
          return { node, network }
        }),
      )
    const killed = await made('killed')
    const frozen = await made('frozen')
    const cut = await made('cut')
    const skewed = await made('skewed', { NODE_OPTIONS: `--import=${wrong}` })
    const all = [...killed, ...frozen, ...cut, ...skewed].map(({ node }) => node)
    for (const node of all) node.start()
    await Promise.all(all.map(({ now }) => now.said('ready')))
    const handedIn = () => all.reduce((sum, node) => sum + node.count('handed_in'), 0)
    /** A moment of the storm: so many jobs are done, about, and the node has some. */
    const moment = async (part: number, ...of: readonly StormNode[]): Promise<void> => {
      const due = Math.floor(jobs * (part + random() * 0.05))
      await until(() => handedIn() >= due && of.every(({ held }) => held > 0))
    }
    /** Resolves when another node has one of these jobs. */
    const taken = async (held: readonly string[], by: readonly StormNode[]): Promise<void> => {
      const others = by.map(({ now }) => now.lines)
      await until(() => others.flat().some(({ type, job = '' }) => type === 'claimed' && held.includes(job)))
    }

    const beganAt = performance.now()
    const run = paddock([...stormRun(names, n), ...file, '--data', here.data, '--catalogue', catalogue])

    for (const [at, { node }] of killed.entries()) {
      await moment(0.05 + at * 0.05, node)
      await node.now.end('SIGKILL')
      node.start()
    }

    await moment(0.2)
    // They have some to be frozen with, however soon the others have done the rest.
    const held = await Promise.all(frozen.map(async ({ node }) => ({ node, jobs: await node.hold() })))
    await server.restart('immediate')

    await moment(0.3, ...cut.map(({ node }) => node))
    const behind = await Promise.all(cut.map(async ({ node, network }) => ({ node, network, its: await node.hold() })))
    for (const { node, network, its } of behind) {
      await network.cut()
      const since = performance.now()
      // What ends behind the cut is handed in when others have it.
      await node.release()
      await taken(
        its,
        all.filter((other) => other !== node),
      )
      await setTimeout(Math.max(0, cutMs - (performance.now() - since)))
      await network.mend()
    }

    for (const { node, jobs: its } of held) {
      await moment(0.5, node)
      node.now.child.kill('SIGSTOP')
      await taken(
        its,
        all.filter((other) => other !== node),
      )
      node.now.child.kill('SIGCONT')
      await node.release()
    }

    // In the middle of claims and hand-ins, with nodes that come back.
    await moment(0.7)
    const [back] = killed
    await back?.node.now.end('SIGKILL')
    back?.node.start()
    await server.restart('immediate')

    const ended = await run
    const tookMs = Math.round(performance.now() - beganAt)
    expect([ended.code, ended.err]).toEqual([0, ''])
    // Who was away says what became of what it had, before it is asked to stop.
    await Promise.all(all.map(({ now }) => now.said('ready')))
    await until(() => all.every(({ held }) => held === 0))
    const tally = await handIns(here)
    await stopped()

    const { all: left, elsewhere } = await judgeStorm(
      { data: here.data, catalogue },
      { groups: names.length, n, nodes: folders },
    )
    expect(tally).toMatchObject({ accepted: left.length })
    const refused = all.reduce((sum, node) => sum + node.count('refused'), 0)
    const lost = all.reduce((sum, node) => sum + node.count('lost'), 0)
    // A refusal whose answer was lost is asked for again.
    expect(tally['refused']).toBeGreaterThanOrEqual(refused)
    const counted = left.filter(({ end }) => end === 'completed').map(({ groupId, slot }) => `${groupId} ${slot}`)
    const found = {
      jobs,
      nodes: all.length,
      'counted twice': counted.length - new Set(counted).size,
      lost: jobs - new Set(counted).size,
      'hand-ins accepted': tally['accepted'],
      repeated: tally['repeated'],
      'refused by the fence': tally['refused'],
      "stopped as another's": lost,
      'ended twice': elsewhere,
      minutes: (tookMs / 60_000).toFixed(1),
    }
    console.log(`postgres-storm, seed ${seed}:`, found)
    if (sized(true, false)) {
      const line = (cells: readonly unknown[]): string => `| ${cells.join(' | ')} |\n`
      const table = [Object.keys(found), Object.keys(found).map(() => '---'), Object.values(found)].map(line).join('')
      keepSection('bench/TORTURE.md', 'Nodes over PostgreSQL in a storm (`test/world/postgres-storm.test.ts`)', table)
    }
    expect(refused + lost).toBeGreaterThan(0)
  },
)
