/** A catalogue behind a real PgBouncer: session mode at its own defaults works, the other modes are named before anything is written. */
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openPostgresCatalogue, openPostgresQueue, probePostgresCatalogue } from '../../src/trajectory/index.ts'
import { CatalogueMoment, Database } from '../../src/trajectory/postgres/index.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(async () => server?.stop())

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Lets the pooler make so many connections to the server, which are idle in the end. */
async function fill(direct: string, url: string, connections: number): Promise<void> {
  await withClient(direct, async (holder) => {
    await holder.query('SELECT pg_advisory_lock(1)')
    const all = Array.from({ length: connections }, () =>
      withClient(url, (client) => client.query('SELECT pg_advisory_xact_lock_shared(1)')),
    )
    for (let waiting = 0; waiting < connections;) {
      const { rows } = await holder.query<{ n: number }>('SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted')
      waiting = rows[0]?.n ?? 0
    }
    await holder.query('SELECT pg_advisory_unlock(1)')
    await Promise.all(all)
  })
}

const options = { connections: 2, unavailable: 'CATALOGUE_UNAVAILABLE', patienceMs: 0 } as const
const limits = `SELECT current_setting('statement_timeout') AS statement,
  current_setting('idle_in_transaction_session_timeout') AS idle, current_setting('search_path') AS path`

it('PgBouncer in session mode, else at its defaults: all works, and the limits are in force', async () => {
  const behind = await server.pooler({ pool_mode: 'session' })
  const url = behind(await server.database())
  await expect(probePostgresCatalogue(url)).resolves.toMatchObject({ schema: 0 })
  const { catalogue, close } = await openPostgresCatalogue({ url })
  await expect(catalogue.runs()).resolves.toEqual([])
  await close()
  await (await openPostgresQueue({ url })).close()
  await (await CatalogueMoment.open(url)).close()
  for (const at of [url, await server.database()]) {
    const database = await Database.open({ ...options, url: at, migrates: true })
    // As many at once as there are connections: each has them.
    const found = await Promise.all([database.query(limits), database.query(limits)])
    await database.close()
    const each = [{ statement: '30s', idle: '30s', path: 'paddock' }]
    expect(found).toEqual([each, each])
  }
})

const refused = { code: 'CONFIG_INVALID', message: expect.stringContaining('a pooler in transaction mode') as unknown }
for (const pool_mode of ['transaction', 'statement']) {
  it.each([
    ['at its defaults', {}, 0],
    ['with one connection', { default_pool_size: '1' }, 0],
    ['with idle connections', {}, 3],
    ['with two connections in turn', { server_round_robin: '1' }, 2],
    ['with three connections in turn', { server_round_robin: '1' }, 3],
    [
      'with startup parameters ignored',
      { ignore_startup_parameters: 'statement_timeout,idle_in_transaction_session_timeout' },
      0,
    ],
  ])(`PgBouncer in ${pool_mode} mode %s is named, and nothing is written or set`, async (_, settings, connections) => {
    const direct = await server.database()
    const url = (await server.pooler({ pool_mode, ...settings }))(direct)
    await fill(direct, url, connections)
    await expect(openPostgresCatalogue({ url })).rejects.toMatchObject(refused)
    await expect(Database.open({ ...options, url, migrates: false })).rejects.toMatchObject(refused)
    await expect(openPostgresQueue({ url })).rejects.toMatchObject(refused)
    await expect(probePostgresCatalogue(url)).rejects.toMatchObject(refused)
    await expect(CatalogueMoment.open(url)).rejects.toMatchObject(refused)
    const { rows } = await withClient(direct, (client) => client.query(`SELECT to_regnamespace('paddock') AS made`))
    expect(rows).toEqual([{ made: null }])
    for (let look = 0; look <= connections; look += 1) {
      const set = await withClient(url, (client) => client.query(limits))
      expect(set.rows).toEqual([{ statement: '0', idle: '0', path: '"$user", public' }])
    }
  })
}
