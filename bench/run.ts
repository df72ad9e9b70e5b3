/**
 * Runs every bench and keeps the tables in `bench/RESULTS.md`. Each figure stands beside a baseline of the same run, so
 * the ratios are what counts. `node bench/run.ts [proxy|store|box …] [-- flags of the bench]`.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { fileURLToPath } from 'node:url'

const results = fileURLToPath(new URL('RESULTS.md', import.meta.url))
const all = [
  {
    name: 'proxy',
    about: 'Proxy with recording on (`bench/proxy.ts`), beside nginx, a bare http-proxy and a naive recorder',
  },
  { name: 'store', about: 'Store (`bench/store.ts`), beside full JSON snapshots' },
  { name: 'queue', about: 'Job queue (`bench/queue.ts`): PostgreSQL and SQLite, beside a bare SKIP LOCKED loop' },
  {
    name: 'nodes',
    about: 'Throughput against nodes (`bench/nodes.ts`), beside one node times their number',
  },
  {
    name: 'shards',
    about:
      'Shards of a node (`bench/shards.ts`), beside one process and a bare relay, each process with a slice of a core',
  },
  { name: 'scale', about: 'Where many machines saturate (`bench/scale.ts`): a simulation with measured costs' },
  { name: 'box', about: 'Boxes (`bench/box.ts`), beside an attached shell, the exec API and bare create + start' },
  {
    name: 'remote-docker',
    about: 'Model calls of boxes in a daemon of another machine (`bench/remote-docker.ts`), beside a mounted socket',
  },
  { name: 'search', about: 'Search index (`bench/search.ts`), beside SQLite FTS5 over the same passages' },
  { name: 'sql', about: 'SQL of agents in boxes (`bench/sql.ts`), beside a bare loop in the same boxes' },
  { name: 'math', about: 'Math answers (`bench/math.ts`), beside the graders that others publish' },
  {
    name: 'rl',
    about: 'Rounds that stop early, beside waiting for all, and slow tasks while weights change fast (`bench/rl.ts`)',
  },
  {
    name: 'loop',
    about: 'Rows into Python (`bench/loop.ts`): groups of long rollouts, beside the same bytes from a plain server',
  },
  {
    name: 'learn',
    about: 'A model that learns (`bench/learn.ts`, `npm run learn:proof`), beside one whose rewards are shuffled',
  },
  {
    name: 'learn-long',
    about: 'SmolLM2-135M learns (`bench/learn-long.ts`, `npm run learn:long`)',
  },
  {
    name: 'engine',
    about: 'A real engine (`bench/engine.ts`): tokens per second of vLLM through Paddock, beside vLLM alone',
  },
  { name: 'fork', about: 'A fork at the 60th call (`bench/fork.ts`), beside running the past again' },
  {
    name: 'view',
    about: 'Pages of the viewer (`bench/view.ts`) over a large run and a long session, beside an empty page',
  },
  { name: 'gui', about: 'Gui tiers (`bench/gui.ts`), beside a command in the same box' },
]
const given = process.argv.slice(2)
const asked = given.slice(0, given.includes('--') ? given.indexOf('--') : given.length)
const flags = given.slice(asked.length + 1)
const unknown = asked.filter((name) => !all.some((bench) => bench.name === name))
if (unknown.length > 0) {
  console.error(`USAGE: there is no bench ${unknown.join(', ')}. Fix: use ${all.map(({ name }) => name).join(', ')}.`)
  process.exit(2)
}
const sections = readSections()
for (const { name, about } of all) {
  if (asked.length > 0 && !asked.includes(name)) continue
  console.log(`\n== ${about}`)
  const ran = spawnSync(process.execPath, [fileURLToPath(new URL(`${name}.ts`, import.meta.url)), ...flags], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const table = ran.stdout.trim()
  console.log(table)
  if (ran.status !== 0) {
    console.error(
      `${name} ended with exit code ${String(ran.status ?? ran.signal)}; its last table in RESULTS.md stays.`,
    )
    process.exitCode = 1
    continue
  }
  sections.set(
    name,
    `## ${about}\n\nMeasured ${new Date().toISOString().slice(0, 10)} on ${machine()}.\n\n\`\`\`\n${table}\n\`\`\`\n`,
  )
}
const head =
  '# Last results\n\nWritten by `node bench/run.ts`. The machine is shared and noisy: compare the ratios, not the times.\n'
writeFileSync(results, [head, ...all.flatMap(({ name }) => sections.get(name) ?? [])].join('\n'))

function machine(): string {
  const [cpu] = cpus()
  return `${cpus().length} cores (${cpu?.model.trim() ?? 'unknown'}), Linux ${release()}, Node ${process.versions.node}`
}

/** The sections that an earlier run left, by bench. */
function readSections(): Map<string, string> {
  const found = new Map<string, string>()
  if (!existsSync(results)) return found
  const parts = readFileSync(results, 'utf8').split(/^(?=## )/m)
  for (const { name, about } of all) {
    const part = parts.find((text) => text.startsWith(`## ${about}`))
    if (part !== undefined) found.set(name, `${part.trimEnd()}\n`)
  }
  return found
}
