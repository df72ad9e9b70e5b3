/**
 * Throughput against nodes: rollouts per second of a run over 1, 2, 4 and 8 nodes, each rollout waiting for the model most of its time, beside
 * what one node does times their number. All stand on this machine, so places are bounded: where its cores are the limit a ratio would
 * say nothing of nodes, and the share that was used is printed. Beside it the processor time of the coordinator and of PostgreSQL for
 * 1,000 rollouts.
 *
 *   node bench/nodes.ts [--nodes 1,2,4,8] [--places 6] [--rounds 4] [--model-ms 10000]
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openReader } from '../src/trajectory/index.ts'
import { paddock } from '../test/cli/paddock.ts'
import { coordinator, nodeArgs, started, stopped } from '../test/cli/running-nodes.ts'
import { startEngine } from '../test/proxy/support.ts'
import { startPostgres } from '../test/world/postgres-server.ts'
import { readFlags } from './flags.ts'
import { cpuMsOf, pidsOf, treeOf } from './processes.ts'

const {
  nodes: counts,
  places,
  rounds,
  modelMs,
} = readFlags(
  { nodes: '1,2,4,8', places: 6, rounds: 4, modelMs: 10_000 },
  { nodes: '2', places: 1, rounds: 1, modelMs: 10 },
)
const tasks = fileURLToPath(new URL('../examples/tasks/terminal', import.meta.url))

/** One call, in the node's own process and without a box. */
const harness = `export default {
  name: 'one-call', apiVersion: 1, version: '1', dialect: 'chat', place: 'host', box: 'none', replays: true,
  run: async ({ baseUrl, apiKey, model, prompt, signal }) => {
    const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' }
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: prompt }], max_tokens: 16 })
    const answer = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers, body, signal })
    await answer.text()
    return { end: answer.ok ? 'completed' : 'harness_crash', detail: String(answer.status), answer: null }
  },
}
`

interface Measured {
  readonly nodes: number
  readonly rollouts: number
  readonly perSecond: number
  /** Of all cores, while rollouts ran. */
  readonly busy: number
  readonly coordinatorMs: number
  readonly postgresMs: number
}

let one: Measured | null = null
console.log(`${rounds} rounds of ${places} places per node, ${modelMs} ms of model time, one machine`)
console.log(
  'nodes   rollouts/s   of linear   cores busy   coordinator, s of CPU per 1,000   PostgreSQL, s of CPU per 1,000',
)
for (const count of counts.split(',').map(Number)) {
  const row = await run(count)
  one ??= row
  const { nodes, perSecond, busy, rollouts, coordinatorMs, postgresMs } = row
  const linear = perSecond / ((one.perSecond / one.nodes) * nodes)
  const per1000 = (ms: number) => (ms / rollouts).toFixed(1)
  console.log(
    [
      String(nodes).padStart(5),
      perSecond.toFixed(2).padStart(13),
      `${linear.toFixed(2)}x`.padStart(12),
      `${(busy * 100).toFixed(0)} %`.padStart(13),
      per1000(coordinatorMs).padStart(34),
      per1000(postgresMs).padStart(33),
    ].join(''),
  )
}

async function run(nodes: number): Promise<Measured> {
  const directory = await mkdtemp(join(tmpdir(), 'paddock-bench-nodes-'))
  const server = await startPostgres()
  const engine = await startEngine('--first-token-ms', String(modelMs))
  try {
    const catalogue = await server.database()
    const plugin = join(directory, 'one-call.mjs')
    await writeFile(plugin, harness)
    const config = `export default { harnesses: { 'one-call': ${JSON.stringify(plugin)} } }\n`
    const here = await coordinator(directory, 'here', config, '--engine', engine.url, '--catalogue', catalogue)
    const file = ['--config', join(directory, 'here.config.mjs')]
    const names = Array.from({ length: nodes }, (_, at) => `node-${at}`)
    const joined = await Promise.all(
      names.map(async (name) => started([...(await nodeArgs(here, name, places)), ...file])),
    )
    await Promise.all(joined.map((node) => node.said('ready')))
    const rollouts = nodes * places * rounds
    const pid = here.process.child.pid ?? 0
    const parts = () => ({ coordinator: cpuMsOf(treeOf(pid)), postgres: cpuMsOf(pidsOf('postgres')), cores: cores() })
    const before = parts()
    const which = ['--task', 'log-forensics', '--n', String(rollouts), '--min-usable', '0', '--harness', 'one-call']
    const where = [...file, '--data', here.data, '--catalogue', catalogue, '--json']
    const ended = await paddock(['run', tasks, ...which, ...where])
    const after = parts()
    if (ended.code !== 0) throw new Error(ended.err)
    const store = await openReader(here.data, { catalogue })
    const runs = await store.catalogue.runs()
    const all = (await Promise.all(runs.map(({ id }) => store.catalogue.rollouts({ runId: id })))).flat()
    const done = all.filter(({ end }) => end === 'completed')
    await store.close()
    if (done.length !== rollouts) throw new Error(`${done.length} of ${rollouts} rollouts completed`)
    // From the first that began to the last that ended: how long programs take to start is not what is asked.
    const from = Math.min(...done.map(({ startedAt }) => startedAt ?? Infinity))
    const to = Math.max(...done.map(({ endedAt }) => endedAt ?? 0))
    const idle = after.cores.idle - before.cores.idle
    return {
      nodes,
      rollouts,
      perSecond: (rollouts * 1000) / (to - from),
      busy: 1 - idle / (after.cores.all - before.cores.all),
      coordinatorMs: after.coordinator - before.coordinator,
      postgresMs: after.postgres - before.postgres,
    }
  } finally {
    await stopped()
    await engine.stop()
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

function cores(): { readonly idle: number; readonly all: number } {
  const times = cpus().map(({ times: of }) => of)
  const all = times.reduce((sum, { user, nice, sys, irq, idle }) => sum + user + nice + sys + irq + idle, 0)
  return { all, idle: times.reduce((sum, { idle }) => sum + idle, 0) }
}
