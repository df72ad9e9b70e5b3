/** The job queue on a real PostgreSQL: the suite of every driver, then what only several processes and a server show. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Id, isPaddockError, newId, sha256 } from '../../src/core/index.ts'
import { catalogueOutcomes, queueContract } from '../../src/testing/store/index.ts'
import {
  type HandIn,
  type Lease,
  type NewJob,
  openPostgresCatalogue,
  openPostgresQueue,
  type PostgresQueue,
} from '../../src/trajectory/index.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
  console.log(server.version)
})
afterAll(async () => server?.stop())

queueContract('PostgreSQL', async () => {
  const { queue, catalogue, close } = await openPostgresCatalogue({ url: await server.database() })
  return { queue, outcomes: catalogueOutcomes(catalogue), close }
})

const long = 600_000
const done = (text: string): HandIn => ({ digest: sha256(text), made: null, next: 'done' })
const jobs = (count: number, more: Partial<NewJob> = {}): NewJob[] =>
  Array.from({ length: count }, (_, n) => ({ id: newId(), payload: { n }, ...more }))

const queues: PostgresQueue[] = []
const children: ChildProcess[] = []
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  await Promise.all(queues.splice(0).map((queue) => queue.close()))
})

async function open(url: string): Promise<PostgresQueue> {
  const queue = await openPostgresQueue({ url })
  queues.push(queue)
  return queue
}

async function one(queue: PostgresQueue, session: Id): Promise<Lease> {
  const [lease] = await queue.claim('work', session, { requestId: newId(), limit: 1, capacity: {} })
  if (lease === undefined) throw new Error('nothing to claim')
  return lease
}

/** A node in a process of its own; what it says comes line by line as JSON. */
function startNode(url: string, ...args: readonly string[]): { child: ChildProcess; next: () => Promise<unknown> } {
  const child = spawn(process.execPath, [fileURLToPath(new URL('postgres-node.ts', import.meta.url)), url, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.push(child)
  if (child.stdout === null) throw new Error('no output')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    child,
    next: async () => {
      const line = await lines.next()
      if (line.done === true) throw new Error('the node ended')
      return JSON.parse(line.value) as unknown
    },
  }
}

describe('the schema', () => {
  it('is made once by many that start at once, and refused where a newer Paddock wrote it', async () => {
    const url = await server.database()
    const opened = await Promise.all(Array.from({ length: 6 }, () => open(url)))
    await opened[0]?.enqueue('work', jobs(1))
    expect((await opened[5]?.depth('work'))?.ready).toBe(1)
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query('INSERT INTO paddock.schema_version (version) VALUES (99)')
    await client.end()
    await expect(openPostgresQueue({ url })).rejects.toMatchObject({
      code: 'STORE_SCHEMA',
      message: expect.stringContaining('schema 99') as unknown,
    })
  })

  it('needs no right to create once it stands', async () => {
    const url = await server.database()
    await open(url)
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const name = `node_${newId().replaceAll('-', '')}`
    await client.query(`CREATE ROLE ${name} LOGIN;
      GRANT USAGE ON SCHEMA paddock TO ${name};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA paddock TO ${name};
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA paddock TO ${name}`)
    await client.end()
    const queue = await open(url.replace('paddock@', `${name}@`))
    const session = newId()
    await queue.enqueue('work', jobs(1))
    await queue.join({ id: session, name: 'a', labels: [] }, long)
    expect(await queue.handIn(await one(queue, session), done('x'))).toMatchObject({ accepted: true })
  })

  it('of a server that is not there is QUEUE_UNAVAILABLE', async () => {
    await expect(openPostgresQueue({ url: 'postgres://paddock@/x?host=/nowhere' })).rejects.toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
    })
  })
})

describe('claims', () => {
  it('neither wait for a claim that is under way nor take what it holds', async () => {
    const url = await server.database()
    const queue = await open(url)
    const all = jobs(4)
    await queue.enqueue('work', all)
    const session = newId()
    await queue.join({ id: session, name: 'a', labels: [] }, long)
    const other = new pg.Client({ connectionString: url })
    await other.connect()
    await other.query('BEGIN')
    await other.query('SELECT 1 FROM paddock.jobs WHERE id = ANY ($1) FOR UPDATE', [
      all.slice(0, 3).map(({ id }) => id),
    ])
    expect((await one(queue, session)).jobId).toBe(all[3]?.id)
    await other.query('ROLLBACK')
    expect((await one(queue, session)).jobId).toBe(all[0]?.id)
    await other.end()
  })

  it('read no more rows where more jobs wait', async () => {
    const url = await server.database()
    const queue = await openPostgresQueue({ url })
    await queue.enqueue('work', jobs(5000))
    const session = newId()
    await queue.join({ id: session, name: 'a', labels: [] }, long)
    for (let claim = 0; claim < 20; claim += 1) await one(queue, session)
    // The server counts a connection's rows when that ends.
    await queue.close()
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const read = async (): Promise<number> => {
      const { rows } = await client.query<{ many: number }>(
        `SELECT coalesce(idx_tup_fetch + seq_tup_read, 0)::float8 AS many FROM pg_stat_all_tables
         WHERE schemaname = 'paddock' AND relname = 'jobs'`,
      )
      return rows[0]?.many ?? 0
    }
    await expect.poll(read).toBeGreaterThanOrEqual(20)
    expect(await read()).toBeLessThan(5000)
    await client.end()
  })

  it('of one request are given once, also when it is asked many times at once', async () => {
    const queue = await open(await server.database())
    await queue.enqueue('work', jobs(50))
    const session = newId()
    await queue.join({ id: session, name: 'a', labels: [] }, long)
    const request = { requestId: newId(), limit: 3, capacity: {} }
    const answers = await Promise.all(Array.from({ length: 8 }, () => queue.claim('work', session, request)))
    for (const answer of answers) expect(answer).toEqual(answers[0])
    expect(await queue.depth('work')).toMatchObject({ leased: 3, ready: 47 })
  })
})

describe('a node that is frozen beyond its time', () => {
  for (const claimedAgain of [true, false]) {
    it(`hands in late and is ${claimedAgain ? 'refused where the job went on' : 'accepted once where nobody claimed'}`, async () => {
      const url = await server.database()
      const queue = await open(url)
      await queue.enqueue('work', jobs(1))
      const node = startNode(url, 'hand-in-when-told', '1')
      const held = (await node.next()) as Lease
      node.child.kill('SIGSTOP')
      // Its time is 1 ms: the database knows when that is over.
      await expect.poll(() => queue.sweep()).toMatchObject({ sessions: [held.session], ready: 1 })
      const session = newId()
      await queue.join({ id: session, name: 'b', labels: [] }, long)
      const taken = claimedAgain ? await one(queue, session) : null
      node.child.stdin?.write('go\n')
      node.child.kill('SIGCONT')
      expect(await node.next()).toEqual(
        claimedAgain
          ? [
              { accepted: false, why: 'not_yours' },
              { accepted: false, why: 'not_yours' },
            ]
          : [
              { accepted: true, repeated: false, state: 'done' },
              { accepted: true, repeated: true, state: 'done' },
            ],
      )
      expect(await node.next()).toEqual({ alive: false, cancel: [] })
      if (taken === null)
        expect(await queue.claim('work', session, { requestId: newId(), limit: 1, capacity: {} })).toEqual([])
      else expect(await queue.handIn(taken, done('b'))).toEqual({ accepted: true, repeated: false, state: 'done' })
      expect((await queue.depth('work')).done).toBe(1)
    })
  }
})

it("a clock of a node that is years off changes nothing: time is the database's", async () => {
  const url = await server.database()
  const queue = await open(url)
  await queue.enqueue('work', jobs(2))
  const year = 365 * 86_400_000
  const [ahead, behind] = [
    startNode(url, 'sweep', String(long), String(10 * year)),
    startNode(url, 'sweep', String(long), String(-10 * year)),
  ]
  const none = { sessions: [], ready: 0, dead: 0, cancelled: 0 }
  const held: Lease[] = []
  for (const { next } of [ahead, behind]) {
    held.push((await next()) as Lease)
    const { date, swept } = (await next()) as { date: number; swept: unknown }
    expect(Math.abs(date - Date.now())).toBeGreaterThan(9 * year)
    expect(swept).toEqual(none)
  }
  expect(await queue.sweep()).toEqual(none)
  for (const lease of held) expect(await queue.handIn(lease, done(lease.jobId))).toMatchObject({ accepted: true })
})

for (const how of ['fast', 'immediate'] as const) {
  it(`a restart of the server (${how}) loses nothing and does nothing twice`, async () => {
    const queue = await open(await server.database())
    const all = jobs(512)
    await queue.enqueue('work', all)
    /** The same call again, as the error says. */
    let unavailable = 0
    const surely = async <T>(call: () => Promise<T>): Promise<T> => {
      for (;;) {
        try {
          return await call()
        } catch (error) {
          if (!isPaddockError(error) || error.code !== 'QUEUE_UNAVAILABLE') throw error
          unavailable += 1
          await setTimeout(10)
        }
      }
    }
    const claims = new Map<Id, number>()
    const settled: Id[] = []
    let restart: Promise<void> | undefined
    const work = async (name: string): Promise<void> => {
      const session = newId()
      await surely(() => queue.join({ id: session, name, labels: [] }, long))
      for (;;) {
        const request = { requestId: newId(), limit: 3, capacity: {} }
        const leases = await surely(() => queue.claim('work', session, request))
        if (leases.length === 0) {
          const { ready } = await surely(() => queue.depth('work'))
          if (ready === 0) return
        }
        for (const lease of leases) {
          claims.set(lease.jobId, (claims.get(lease.jobId) ?? 0) + 1)
          const answer = await surely(() => queue.handIn(lease, done(lease.jobId)))
          // Repeated: the first answer was lost with the connection, and the hand-in stood.
          expect(answer).toMatchObject({ accepted: true, state: 'done' })
          settled.push(lease.jobId)
          if (settled.length >= 100) restart ??= server.restart(how)
        }
      }
    }
    await Promise.all(Array.from({ length: 8 }, (_, n) => work(`node-${n}`)))
    await restart
    expect(unavailable).toBeGreaterThan(0)
    expect(settled).toHaveLength(512)
    expect(new Set(settled)).toEqual(new Set(all.map(({ id }) => id)))
    expect([...claims.values()].every((count) => count === 1)).toBe(true)
    expect(await queue.depth('work')).toEqual({ ready: 0, leased: 0, done: 512, dead: 0, cancelled: 0 })
    const views = await queue.jobs({ ids: settled })
    expect(views.every(({ token, attempt }) => token === 1 && attempt === 1)).toBe(true)
  })
}
