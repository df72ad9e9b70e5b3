/** Every bench: what it is about, what it needs and how long it takes. */
import { fileURLToPath } from 'node:url'

export interface Bench {
  /** Its program is `bench/<name>.ts`. */
  readonly name: string
  /** Heads its section. */
  readonly about: string
  /** Minutes on two quiet cores. */
  readonly minutes: number
  /** The lane that has what it needs: `real` sets up a real vLLM, `world` installs the rest. */
  readonly lane: 'world' | 'real'
}

export const benches: readonly Bench[] = [
  {
    name: 'proxy',
    about: 'Proxy with recording on (`bench/proxy.ts`), beside nginx, a bare http-proxy and a naive recorder',
    minutes: 6,
    lane: 'world',
  },
  { name: 'store', about: 'Store (`bench/store.ts`), beside full JSON snapshots', minutes: 2, lane: 'world' },
  {
    name: 'queue',
    about: 'Job queue (`bench/queue.ts`): PostgreSQL and SQLite, beside a bare SKIP LOCKED loop',
    minutes: 4,
    lane: 'world',
  },
  {
    name: 'nodes',
    about: 'Throughput against nodes (`bench/nodes.ts`), beside one node times their number',
    minutes: 4,
    lane: 'world',
  },
  {
    name: 'shards',
    about:
      'Shards of a node (`bench/shards.ts`), beside one process and a bare relay, each process with a slice of a core',
    minutes: 5,
    lane: 'world',
  },
  {
    name: 'scale',
    about: 'Where many machines saturate (`bench/scale.ts`): a simulation with measured costs',
    minutes: 2,
    lane: 'world',
  },
  {
    name: 'box',
    about: 'Boxes (`bench/box.ts`), beside an attached shell, the exec API and bare create + start',
    minutes: 1,
    lane: 'world',
  },
  {
    name: 'remote-docker',
    about: 'Model calls of boxes in a daemon of another machine (`bench/remote-docker.ts`), beside a mounted socket',
    minutes: 1,
    lane: 'world',
  },
  {
    name: 'search',
    about: 'Search index (`bench/search.ts`), beside SQLite FTS5 over the same passages',
    minutes: 2,
    lane: 'world',
  },
  {
    name: 'sql',
    about: 'SQL of agents in boxes (`bench/sql.ts`), beside a bare loop in the same boxes',
    minutes: 1,
    lane: 'world',
  },
  {
    name: 'math',
    about: 'Math answers (`bench/math.ts`), beside the graders that others publish',
    minutes: 2,
    lane: 'world',
  },
  {
    name: 'rl',
    about: 'Rounds that stop early, beside waiting for all, and slow tasks while weights change fast (`bench/rl.ts`)',
    minutes: 5,
    lane: 'world',
  },
  {
    name: 'loop',
    about: 'Rows into Python (`bench/loop.ts`): groups of long rollouts, beside the same bytes from a plain server',
    minutes: 1,
    lane: 'world',
  },
  {
    name: 'learn',
    about: 'A model that learns (`bench/learn.ts`, `npm run learn:proof`), beside one whose rewards are shuffled',
    minutes: 20,
    lane: 'real',
  },
  {
    name: 'learn-long',
    about: 'SmolLM2-135M learns (`bench/learn-long.ts`, `npm run learn:long`)',
    minutes: 10,
    lane: 'real',
  },
  {
    name: 'engine',
    about: 'A real engine (`bench/engine.ts`): tokens per second of vLLM through Paddock, beside vLLM alone',
    minutes: 15,
    lane: 'real',
  },
  {
    name: 'fork',
    about: 'A fork at the 60th call (`bench/fork.ts`), beside running the past again',
    minutes: 8,
    lane: 'world',
  },
  {
    name: 'view',
    about: 'Pages of the viewer (`bench/view.ts`) over a large run and a long session, beside an empty page',
    minutes: 2,
    lane: 'world',
  },
  { name: 'gui', about: 'Gui tiers (`bench/gui.ts`), beside a command in the same box', minutes: 2, lane: 'world' },
]

/** Where the program of a bench is. */
export function programOf({ name }: Bench): string {
  return fileURLToPath(new URL(`${name}.ts`, import.meta.url))
}
