/** Catalogue and trainer's book on a real PostgreSQL: the suites of every driver, then what only several writers and a server show. */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { type Id, newId, sha256, type Task } from '../../src/core/index.ts'
import { catalogueContract, memoryContract, trainerBookContract } from '../../src/testing/store/index.ts'
import {
  type Catalogue,
  openPostgresCatalogue,
  type PostgresCatalogue,
  type RolloutRecord,
  type SettledRound,
} from '../../src/trajectory/index.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(async () => server?.stop())

const opened: PostgresCatalogue[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()))
})
async function open(url: string, patienceMs?: number): Promise<PostgresCatalogue> {
  const one = await openPostgresCatalogue({ url, ...(patienceMs === undefined ? {} : { patienceMs }) })
  opened.push(one)
  return one
}

catalogueContract('PostgreSQL', async () => {
  const url = await server.database()
  const { catalogue, close } = await openPostgresCatalogue({ url })
  const readers: PostgresCatalogue[] = []
  return {
    catalogue,
    reader: async () => {
      const reader = await openPostgresCatalogue({ url })
      readers.push(reader)
      return reader.catalogue
    },
    close: async () => {
      await Promise.all([close(), ...readers.map((reader) => reader.close())])
    },
  }
})

trainerBookContract('PostgreSQL', async () => openPostgresCatalogue({ url: await server.database() }))
memoryContract('PostgreSQL', async () => openPostgresCatalogue({ url: await server.database() }))

const task: Task = {
  digest: sha256('task'),
  name: 'task',
  environment: 'terminal',
  instruction: 'do',
  split: 'train',
  source: 'test',
  data: {},
}
const spec = {
  n: 1,
  over: 0,
  minUsable: 1,
  stopWhen: { kind: 'usable', count: 1 },
  carry: false,
  topUp: 0,
  deadlineMs: null,
  labels: {},
  horizon: null,
  fork: null,
  onCut: { horizon: 'verify', budget: 'verify', context_overflow: 'verify', agent_timeout: 'verify' },
} as const

async function group(catalogue: Catalogue, runId: Id): Promise<Id> {
  const id = newId()
  await catalogue.putTask(task)
  await catalogue.putRun({ id: runId, name: 'r', createdAt: 1, config: {} })
  await catalogue.putGroup({ id, runId, taskDigest: task.digest, promptVariant: '', createdAt: 1 })
  return id
}

async function rollout(catalogue: Catalogue): Promise<RolloutRecord> {
  const runId = newId()
  const groupId = await group(catalogue, runId)
  const record = { id: newId(), runId, groupId, slot: 0, attempt: 0, harness: 'shell', createdAt: 3 }
  await catalogue.putRollout(record)
  return record
}

const settledOf = (runId: Id, groupId: Id, round: number): SettledRound => {
  const none = { members: 0, sampledTokens: 0 }
  const about = { usable: 0, censored: none, carried: none, neverBegan: 0 }
  return { groupId, runId, round, state: 'settled', stoppedBy: null, members: [], ...about }
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

it('a schema that a newer Paddock wrote is refused', async () => {
  const url = await server.database()
  await open(url)
  await withClient(url, (client) => client.query('INSERT INTO paddock.schema_version (version) VALUES (99)'))
  await expect(openPostgresCatalogue({ url })).rejects.toMatchObject({
    code: 'STORE_SCHEMA',
    message: expect.stringContaining('schema 99') as unknown,
  })
})

it('a server that is not there is told at once, and the URL of it is not', async () => {
  const url = 'postgres://paddock:hidden-word@/x?host=/nowhere'
  const error: unknown = await openPostgresCatalogue({ url }).catch((cause: unknown) => cause)
  expect(error).toMatchObject({ code: 'CATALOGUE_UNAVAILABLE' })
  expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('hidden-word')
})

it('whoever follows a run sees each event once and in order, however many write at once', async () => {
  const url = await server.database()
  const [reader, ...writers] = await Promise.all(Array.from({ length: 5 }, () => open(url)))
  if (reader === undefined) throw new Error('none opened')
  const runId = newId()
  const groups = await Promise.all(Array.from({ length: 40 }, () => group(reader.catalogue, runId)))
  const seen: number[] = []
  let over = false
  const following = (async () => {
    for (;;) {
      const last = over
      const found = await reader.catalogue.runEvents(runId, { after: seen.at(-1) ?? 0, limit: 7 })
      seen.push(...found.map(({ seq }) => seq))
      if (last && found.length === 0) return
    }
  })()
  await Promise.all(
    groups.map(async (groupId, n) => {
      const { catalogue } = writers[n % writers.length] ?? reader
      for (let round = 0; round < 2; round += 1) {
        await catalogue.openRound({ groupId, runId, round, spec })
        await catalogue.settleRound(settledOf(runId, groupId, round))
      }
    }),
  )
  over = true
  await following
  const all = await reader.catalogue.runEvents(runId, { after: 0, limit: 1000 })
  expect(all).toHaveLength(160)
  expect(seen).toEqual(all.map(({ seq }) => seq))
})

it('an event waits for one of its run that is not committed, and for no other run', async () => {
  const url = await server.database()
  const { catalogue } = await open(url)
  const [mine, other] = [newId(), newId()]
  const [mineGroup, otherGroup] = [await group(catalogue, mine), await group(catalogue, other)]
  await withClient(url, async (client) => {
    await client.query('BEGIN')
    await client.query('SELECT 1 FROM paddock.runs WHERE id = $1 FOR NO KEY UPDATE', [mine])
    await client.query(
      `INSERT INTO paddock.run_events (seq, run, kind, at, data, digest)
       SELECT nextval('paddock.run_events_seq'), $1, 'attached', 1, '{}', 0`,
      [mine],
    )
    let isThere = false
    const waiting = catalogue
      .openRound({ groupId: mineGroup, runId: mine, round: 0, spec })
      .then(() => (isThere = true))
    await catalogue.openRound({ groupId: otherGroup, runId: other, round: 0, spec })
    expect(await catalogue.lastRunEvent(other)).toBeGreaterThan(0)
    expect(isThere).toBe(false)
    expect(await catalogue.lastRunEvent(mine)).toBe(0)
    await client.query('ROLLBACK')
    await waiting
    expect(await catalogue.lastRunEvent(mine)).toBeGreaterThan(0)
  })
})

it('many who open slots at once number them without a gap, and one round settles once', async () => {
  const url = await server.database()
  const all = await Promise.all(Array.from({ length: 4 }, () => open(url)))
  const [first] = all
  if (first === undefined) throw new Error('none opened')
  const runId = newId()
  const groupId = await group(first.catalogue, runId)
  await first.catalogue.openRound({ groupId, runId, round: 0, spec })
  const slots = await Promise.all(
    Array.from({ length: 24 }, (_, n) => {
      const { catalogue } = all[n % 4] ?? first
      return catalogue.openSlots(groupId, [{ jobId: newId(), key: `k${n % 12}` }])
    }),
  )
  const numbers = slots.flat().map(({ slot }) => slot)
  expect(new Set(numbers)).toEqual(new Set(Array.from({ length: 12 }, (_, n) => n)))
  const settled = await Promise.all(
    all.map(({ catalogue }, usable) => catalogue.settleRound({ ...settledOf(runId, groupId, 0), usable })),
  )
  for (const one of settled) expect(one).toEqual(settled[0])
})

it('text with characters that PostgreSQL does not take comes back as it was', async () => {
  const { catalogue } = await open(await server.database())
  const { id } = await rollout(catalogue)
  const text = 'a\0b\uf8e0c\uf8e00'
  await catalogue.taint(id, text)
  await catalogue.taint(id, text)
  await catalogue.label(id, text, text)
  await catalogue.endRollout(id, 20, 'infra', text)
  await catalogue.endRollout(id, 20, 'infra', text)
  expect(await catalogue.rollout(id)).toMatchObject({ endDetail: text, taints: [text], labels: { [text]: text } })
})

it('a row that somebody changed is found', async () => {
  const url = await server.database()
  const { catalogue } = await open(url)
  const { id } = await rollout(catalogue)
  await catalogue.endRollout(id, 20, 'infra', 'x')
  await withClient(url, (client) => client.query(`UPDATE paddock.rollout_ends SET "end" = 'completed'`))
  await expect(catalogue.rollout(id)).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
})

for (const how of ['fast', 'immediate'] as const) {
  it(`a restart of the server (${how}) is waited for: nothing is lost and nothing is there twice`, async () => {
    const { catalogue } = await open(await server.database())
    const runId = newId()
    const groupId = await group(catalogue, runId)
    let done = 0
    let restart: Promise<void> | undefined
    const write = async (slot: number): Promise<void> => {
      const id = newId()
      await catalogue.putRollout({ id, runId, groupId, slot, attempt: 0, harness: 'shell', createdAt: 3 })
      await catalogue.startRollout(id, 4)
      await catalogue.taint(id, 'x')
      await catalogue.endRollout(id, 5, 'completed', '')
      done += 1
      if (done >= 10) restart ??= server.restart(how)
    }
    await Promise.all(
      Array.from({ length: 8 }, async (_, worker) => {
        for (let n = 0; n < 8 || (restart === undefined && n < 100); n += 1) await write(worker * 1000 + n)
      }),
    )
    await restart
    const found = await catalogue.rollouts({ runId })
    expect(found).toHaveLength(done)
    for (const view of found) expect(view).toMatchObject({ startedAt: 4, endedAt: 5, taints: ['x'] })
  })
}

it('a server that stays away is told after the patience that was asked for', async () => {
  const own = await startPostgres()
  const { catalogue, close } = await openPostgresCatalogue({ url: await own.database(), patienceMs: 0 })
  await own.stop()
  await expect(catalogue.runs()).rejects.toMatchObject({ code: 'CATALOGUE_UNAVAILABLE' })
  await close()
})
