/**
 * What a lease costs: jobs claimed and handed in per second, and how long a claim and a hand-in take, in PostgreSQL, in
 * SQLite and in a bare loop over the same PostgreSQL: one `UPDATE … SKIP LOCKED … RETURNING` and one `UPDATE` by id, which
 * knows no sessions, fences, labels, groups or repeats. PostgreSQL is durable at each commit (`fsync`), SQLite against a
 * kill of the process (`synchronous: normal`). All three in turn, in each round; each cell has a fresh topic.
 *
 *   node bench/queue.ts [--seconds 2] [--rounds 3] [--backlog 40000]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { type Id, newId, sha256 } from '../src/core/index.ts'
import { openPostgresQueue, openStore, type Queue } from '../src/trajectory/index.ts'
import { startPostgres } from '../test/world/postgres-server.ts'
import { readFlags } from './flags.ts'

const { seconds, rounds, backlog } = readFlags(
  { seconds: 2, rounds: 3, backlog: 40_000 },
  { seconds: 0.05, rounds: 1, backlog: 3000 },
)

interface Target {
  readonly name: string
  fill(topic: string, ids: readonly Id[]): Promise<void>
  /** A claimer: takes up to `limit` jobs and answers with one call per job that ends it. */
  claimer(): Promise<(topic: string, limit: number) => Promise<readonly (() => Promise<unknown>)[]>>
}

interface Cost {
  readonly perSecond: number
  readonly claims: readonly number[]
  readonly handIns: readonly number[]
}

const payload = { task: 'x'.repeat(180) }

function ofQueue(name: string, queue: Queue): Target {
  return {
    name,
    fill: (topic, ids) =>
      queue.enqueue(
        topic,
        ids.map((id) => ({ id, payload })),
      ),
    claimer: async () => {
      const session = newId()
      await queue.join({ id: session, name: session, labels: [] }, 3_600_000)
      return async (topic, limit) => {
        const leases = await queue.claim(topic, session, { requestId: newId(), limit, capacity: {} })
        return leases.map((lease) => () => {
          const what = { digest: sha256(lease.jobId), made: null, next: 'done' } as const
          return queue.handIn(lease, what)
        })
      }
    },
  }
}

async function bareLoop(pool: pg.Pool): Promise<Target> {
  await pool.query(`CREATE TABLE bare (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, topic text NOT NULL,
    payload text NOT NULL, state text NOT NULL DEFAULT 'ready') WITH (fillfactor = 70)`)
  await pool.query(`CREATE INDEX bare_ready ON bare (topic, n) WHERE state = 'ready'`)
  return {
    name: 'bare SKIP LOCKED loop',
    fill: async (topic, ids) => {
      const text = JSON.stringify(payload)
      await pool.query('INSERT INTO bare (topic, payload) SELECT $1, $2 FROM generate_series(1, $3)', [
        topic,
        text,
        ids.length,
      ])
    },
    claimer: () =>
      Promise.resolve(async (topic, limit) => {
        const { rows } = await pool.query<{ n: string }>({
          name: 'claim',
          text: `UPDATE bare SET state = 'leased' WHERE n = ANY (ARRAY(SELECT n FROM bare
            WHERE topic = $1 AND state = 'ready' ORDER BY n LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING n, payload`,
          values: [topic, limit],
        })
        return rows.map(({ n }) => () => {
          const text = `UPDATE bare SET state = 'done' WHERE n = $1 AND state = 'leased'`
          return pool.query({ name: 'done', text, values: [n] })
        })
      }),
  }
}

async function measure(target: Target, claimers: number, limit: number): Promise<Cost> {
  const topic = newId()
  for (let left = backlog; left > 0; left -= 1000) {
    await target.fill(
      topic,
      Array.from({ length: Math.min(left, 1000) }, () => newId()),
    )
  }
  const all = await Promise.all(Array.from({ length: claimers }, () => target.claimer()))
  const claims: number[] = []
  const handIns: number[] = []
  const timed = async <T>(times: number[], work: () => Promise<T>): Promise<T> => {
    const from = performance.now()
    const result = await work()
    times.push(performance.now() - from)
    return result
  }
  const began = performance.now()
  await Promise.all(
    all.map(async (claim) => {
      while (performance.now() - began < seconds * 1000) {
        const jobs = await timed(claims, () => claim(topic, limit))
        if (jobs.length === 0) throw new Error(`${target.name}: ${backlog} jobs were not enough. Fix: --backlog`)
        for (const job of jobs) await timed(handIns, job)
      }
    }),
  )
  return { perSecond: (handIns.length / (performance.now() - began)) * 1000, claims, handIns }
}

const server = await startPostgres()
const directory = await mkdtemp(join(tmpdir(), 'paddock-bench-queue-'))
const queue = await openPostgresQueue({ url: await server.database() })
const store = await openStore(directory)
const pool = new pg.Pool({ connectionString: await server.database(), max: 8 })
try {
  const targets = [await bareLoop(pool), ofQueue('PostgreSQL', queue), ofQueue('SQLite', store.queue)]
  console.log(`${server.version}; ${backlog} jobs waiting, 200 B each; medians of ${rounds} rounds of ${seconds} s\n`)
  console.log(
    `${''.padEnd(38)}${['leases/s', 'to bare', 'claim p50 ms', 'p99', 'hand-in p50 ms', 'p99'].map((head) => head.padStart(16)).join('')}`,
  )
  for (const [claimers, limit] of [
    [1, 1],
    [8, 1],
    [1, 16],
    [8, 16],
  ] as const) {
    const costs = targets.map((): Cost[] => [])
    for (let round = 0; round < rounds; round += 1) {
      for (const [at, target] of targets.entries()) costs[at]?.push(await measure(target, claimers, limit))
    }
    const bare = median(costs[0]?.map(({ perSecond }) => perSecond) ?? [])
    for (const [at, target] of targets.entries()) {
      const of = costs[at] ?? []
      const perSecond = median(of.map((cost) => cost.perSecond))
      const part = (key: 'claims' | 'handIns', share: number): string =>
        median(of.map((cost) => quantile(cost[key], share))).toFixed(1)
      const cells = [
        perSecond.toFixed(0),
        `${(perSecond / bare).toFixed(2)}x`,
        part('claims', 0.5),
        part('claims', 0.99),
        part('handIns', 0.5),
        part('handIns', 0.99),
      ]
      const name = `${claimers} × ${String(limit).padStart(2)} at a time, ${target.name}`
      console.log(`${name.padEnd(38)}${cells.map((cell) => cell.padStart(16)).join('')}`)
    }
  }
} finally {
  await pool.end()
  await queue.close()
  await store.close()
  await server.stop()
  await rm(directory, { recursive: true, force: true })
}

function quantile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function median(all: readonly number[]): number {
  return quantile(all, 0.5)
}
