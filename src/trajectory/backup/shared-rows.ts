/** Rows of one data directory between a catalogue in PostgreSQL and the catalogue beside a log. Their digests go with them. */
import type { Database } from 'better-sqlite3'
import { type Id, PaddockError } from '../../core/index.ts'
import type { CatalogueMoment, Connection } from '../postgres/index.ts'
import { Statements } from '../sqlite/index.ts'
import { type SharedTable, sharedTables } from './shared-tables.ts'

type Row = Readonly<Record<string, unknown>>

const rowsAtOnce = 1000
const quoted = (name: string): string => `"${name}"`

/** Writes what a catalogue in PostgreSQL has of a data directory into an empty catalogue. */
export async function copyFromPostgres(moment: CatalogueMoment, home: Id, into: Database): Promise<void> {
  const { columnsOf, toSqlite } = await import('../postgres/index.ts')
  into.exec('BEGIN IMMEDIATE')
  for (const table of sharedTables) {
    const columns = await columnsOf(moment.connection, table.name)
    const names = columns.map(({ name }) => quoted(name)).join(', ')
    const insert = into.prepare(`INSERT INTO ${table.name} (${names}) VALUES (${columns.map(() => '?').join(', ')})`)
    // What a trigger made of settled rounds.
    into.exec(`DELETE FROM ${table.name}`)
    const text = `SELECT ${columns.map(toSqlite).join(', ')} FROM ${table.name} WHERE ${table.of ?? '$1::text IS NOT NULL'}`
    for await (const some of moment.rows<Row>(text, [home])) {
      for (const row of some) insert.run(...columns.map(({ name }) => row[name]))
    }
  }
  into.exec('COMMIT')
}

/** Removes the rows that {@link copyToPostgres} has copied. */
export function forgetRows(db: Database): void {
  db.transaction(() => {
    for (const { name } of sharedTables.toReversed()) db.exec(`DELETE FROM ${name}`)
    db.exec('DELETE FROM covered')
  })()
}

/**
 * Writes the rows of a catalogue into a catalogue in PostgreSQL, as those of the data directory `home`. Numbers of rows
 * begin behind those that are there. Throws `STORE_CONFLICT` where it has runs of this directory, or one of these rows.
 */
export async function copyToPostgres(from: Database, home: { readonly id: Id; readonly name: string }, to: Connection) {
  await to.query(`LOCK TABLE ${sharedTables.map(({ name }) => name).join(', ')} IN SHARE ROW EXCLUSIVE MODE`)
  const [used] = await to.query('SELECT 1 FROM run_homes WHERE home = $1 LIMIT 1', [home.id])
  if (used !== undefined) {
    throw new PaddockError('STORE_CONFLICT', 'the catalogue in PostgreSQL has runs of this data directory already', {
      fix: 'Restore into a new database; what an earlier restore left unfinished goes with its database.',
    })
  }
  await to.query(
    'INSERT INTO data_directories (id, name) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET name = excluded.name',
    [home.id, home.name],
  )
  const begins = new Map<string, number>()
  for (const table of sharedTables) {
    if (table.name === 'handouts') await forgetTriggered(from, to)
    await copyTable(from, table, to, begins)
    if (table.name === 'runs') {
      await eachSome<{ id: Id }>(from, 'SELECT id FROM runs', (some) =>
        to.query('INSERT INTO run_homes (run, home) SELECT unnest($1::text[]), $2', [
          some.map(({ id }) => id),
          home.id,
        ]),
      )
    }
  }
  await to.query(`SELECT setval('run_events_seq', greatest(last_value, (SELECT coalesce(max(seq), 1) FROM run_events)))
    FROM run_events_seq`)
}

/** What a trigger made of settled rounds, in whose place the true rows come. */
async function forgetTriggered(from: Database, to: Connection): Promise<void> {
  await eachSome<{ id: Id }>(from, 'SELECT id FROM runs', (some) =>
    to.query('DELETE FROM handouts WHERE run = ANY ($1::text[])', [some.map(({ id }) => id)]),
  )
}

async function copyTable(from: Database, table: SharedTable, to: Connection, begins: Map<string, number>) {
  const { columnsOf, toColumn } = await import('../postgres/index.ts')
  const { name, of, numbered = {} } = table
  const columns = await columnsOf(to, name)
  if ('n' in numbered) {
    const [last] = await to.query<{ n: number }>(`SELECT coalesce(max(n), 0) AS n FROM ${name}`)
    begins.set(name, last?.n ?? 0)
  }
  const names = columns.map((column) => quoted(column.name)).join(', ')
  const [arrays, values] = [columns.map((column) => toColumn(column).from), columns.map((one) => toColumn(one).value)]
  const insert = `INSERT INTO ${name} (${names}) OVERRIDING SYSTEM VALUE SELECT ${values.join(', ')}
    FROM unnest(${arrays.map((type, at) => `$${at + 1}::${type}`).join(', ')}) AS given (${names})
    ${of === null ? 'ON CONFLICT DO NOTHING' : ''}`
  await eachSome<Row>(from, `SELECT ${names} FROM ${name}`, (some) =>
    to.query(
      insert,
      columns.map((column) => {
        const shift = begins.get(numbered[column.name] ?? '') ?? 0
        return some.map((row) => (shift === 0 ? row[column.name] : Number(row[column.name]) + shift))
      }),
    ),
  )
  if (!('n' in numbered)) return
  await to.query(
    `SELECT setval(pg_get_serial_sequence('paddock.${name}', 'n'), n) FROM (SELECT max(n) AS n FROM ${name}) AS last WHERE n IS NOT NULL`,
  )
}

async function eachSome<Some>(db: Database, text: string, work: (some: readonly Some[]) => Promise<unknown>) {
  let some: Some[] = []
  for (const row of new Statements(db).each<Some>(text)) {
    some.push(row)
    if (some.length < rowsAtOnce) continue
    await work(some)
    some = []
  }
  if (some.length > 0) await work(some)
}
