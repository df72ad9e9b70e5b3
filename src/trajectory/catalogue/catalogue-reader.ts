import { type Digest, type EngineFingerprint, type Id, PaddockError, type Task } from '../../core/index.ts'
import type {
  ArchivedRecord,
  CatalogueReader,
  GroupRecord,
  MemoryPage,
  MemoryQuery,
  RolloutFilter,
  RolloutView,
  RoundView,
  RunEvent,
  RunRecord,
  SlotRecord,
  VerificationRecord,
} from '../contract/index.ts'
import { readMemory } from '../memory/index.ts'
import { first, type Sql, wholeRows } from '../sql/index.ts'
import { markOf, touchedSince } from './marks.ts'
import { carriedSlots, parseRound, parseSettled, settledAfter } from './rounds.ts'
import { type RolloutRow, viewsOf } from './rollout-views.ts'
import { catalogueTables, type CoveredTable } from './schema.ts'

interface RecordRow {
  readonly record: string
}

const {
  archived,
  fingerprints,
  groups,
  rollouts,
  runs,
  tasks,
  tokenTexts,
  rounds,
  slots,
  settled,
  runEvents,
  verifications,
} = catalogueTables

/** More than any table has. */
const all = Number.MAX_SAFE_INTEGER

/** `CatalogueReader` over SQL: each row is checked against its digest. Methods throw `STORE_CORRUPT`. */
export class SqlCatalogueReader implements CatalogueReader {
  protected readonly sql: Sql
  /** The data directory that reads, where several share the catalogue; null: it is the only one. */
  protected readonly home: Id | null

  constructor(sql: Sql, home: Id | null = null) {
    this.sql = sql
    this.home = home
  }

  async elsewhere(runId: Id): Promise<string | null> {
    if (this.home === null) return null
    const other = await first<{ name: string }>(
      this.sql,
      `SELECT d.name FROM run_homes h JOIN data_directories d ON d.id = h.home WHERE h.run = ? AND h.home <> ?`,
      runId,
      this.home,
    )
    return other?.name ?? null
  }

  run(id: Id): Promise<RunRecord> {
    return this.#one<RunRecord>(runs, 'id', id)
  }

  runs(limit = all): Promise<readonly RunRecord[]> {
    return this.#records<RunRecord>(runs, 'ORDER BY n DESC LIMIT ?', limit)
  }

  async unfinishedRuns(of: 'all' | 'evals'): Promise<readonly RunRecord[]> {
    const goesOn = `EXISTS (SELECT 1 FROM groups g JOIN group_rounds r ON r."group" = g.id WHERE g.run = runs.id
      AND NOT EXISTS (SELECT 1 FROM settled_rounds s WHERE s."group" = r."group" AND s.round = r.round))`
    // Which part of a configuration it is, is known once it is parsed.
    const mayBeOpen = `record LIKE '%"trainer":%' AND id NOT IN (SELECT run FROM closed_runs)`
    const here = this.home === null ? '' : 'AND id IN (SELECT run FROM run_homes WHERE home = ?)'
    const found = await this.#records<RunRecord>(
      runs,
      `WHERE ((${mayBeOpen}) OR ${goesOn}) ${here} ORDER BY n DESC`,
      ...(this.home === null ? [] : [this.home]),
    )
    const going = new Set((await this.sql.all<{ id: Id }>(`SELECT id FROM runs WHERE ${goesOn}`)).map(({ id }) => id))
    return found.filter((run) => {
      if (of === 'evals' && partOf(run, 'eval') === null) return false
      return going.has(run.id) || partOf(run, 'trainer') !== null
    })
  }

  task(digest: Digest): Promise<Task> {
    return this.#one<Task>(tasks, 'task', digest)
  }

  tasks(): Promise<readonly Task[]> {
    return this.#records<Task>(tasks, 'ORDER BY n')
  }

  group(id: Id): Promise<GroupRecord> {
    return this.#one<GroupRecord>(groups, 'id', id)
  }

  groups(runId: Id): Promise<readonly GroupRecord[]> {
    return this.#records<GroupRecord>(groups, 'WHERE run = ? ORDER BY n', runId)
  }

  async rollout(id: Id): Promise<RolloutView> {
    const [view] = await viewsOf(this.sql, await this.#rows<RolloutRow>(rollouts, 'WHERE id = ?', id))
    if (view === undefined) throw new PaddockError('NOT_FOUND', `there is no rollout ${id}`)
    return view
  }

  async rollouts(filter: RolloutFilter): Promise<readonly RolloutView[]> {
    const conditions: string[] = []
    const values: unknown[] = []
    for (const [condition, value] of [
      ['run = ?', filter.runId],
      ['"group" = ?', filter.groupId],
      [
        `slot IN (SELECT CAST(value AS INTEGER) FROM ${this.sql.dialect.list} AS l)`,
        filter.slots === undefined ? undefined : this.sql.list(filter.slots),
      ],
      ['"group" IN (SELECT id FROM groups WHERE task = ?)', filter.taskDigest],
      [`id IN ${this.sql.dialect.list}`, filter.ids === undefined ? undefined : this.sql.list(filter.ids)],
      ['n > (SELECT n FROM rollouts WHERE id = ?)', filter.after],
      ['n < (SELECT n FROM rollouts WHERE id = ?)', filter.before ?? undefined],
    ] as const) {
      if (value === undefined) continue
      conditions.push(condition)
      values.push(value)
    }
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
    const order = filter.before === undefined ? 'n' : 'n DESC'
    return viewsOf(
      this.sql,
      await this.#rows<RolloutRow>(rollouts, `${where} ORDER BY ${order} LIMIT ?`, ...values, filter.limit ?? all),
    )
  }

  async countRollouts(of: { runId: Id | null } | { taskDigest: Digest }): Promise<number> {
    const [where, values] =
      'taskDigest' in of
        ? ['WHERE "group" IN (SELECT id FROM groups WHERE task = ?)', [of.taskDigest]]
        : of.runId === null
          ? ['', []]
          : ['WHERE run = ?', [of.runId]]
    const found = await first<{ n: number }>(this.sql, `SELECT count(*) AS n FROM rollouts ${where}`, ...values)
    return Number(found?.n ?? 0)
  }

  mark(): Promise<string> {
    return markOf(this.sql)
  }

  touchedSince(mark: string, { runId }: { runId: Id | null }): Promise<readonly Id[]> {
    return touchedSince(this.sql, mark, runId)
  }

  async rounds(groupId: Id): Promise<readonly RoundView[]> {
    const of = <Row extends object>(table: CoveredTable, column: string): Promise<readonly Row[]> =>
      this.#rows<Row>(table, `WHERE "group" = ? ORDER BY ${column}`, groupId)
    const known = await of<RecordRow & { round: number; opened_at: number }>(rounds, 'round')
    if (known.length === 0) return []
    const ended = await of<RecordRow & { round: number }>(settled, 'round')
    const lists = new Map(ended.map((row) => [row.round, row.record]))
    const places = await of<{ slot: number; round: number; job: Id; key: string | null }>(slots, 'slot')
    const now = await this.databaseNow()
    let carried: readonly SlotRecord[] = []
    return known.map(({ round, record, opened_at: openedAt }) => {
      const list = lists.get(round)
      const own = places
        .filter((place) => place.round === round)
        .map(({ slot, job, key }): SlotRecord => ({ slot, round, jobId: job, key }))
      const view = {
        ...parseRound(record),
        ageMs: now - openedAt,
        slots: [...carried, ...own],
        settled: list === undefined ? null : parseSettled(list),
      }
      carried = carriedSlots(view)
      return view
    })
  }

  settledRounds(runId: Id, o: { after: number; limit: number }): ReturnType<CatalogueReader['settledRounds']> {
    return settledAfter(this.sql, runId, o)
  }

  memory(query: MemoryQuery): Promise<MemoryPage> {
    return readMemory(this.sql, query)
  }

  async runEvents(runId: Id, { after, limit }: { after: number; limit: number }): Promise<readonly RunEvent[]> {
    const rows = await this.#rows<{ seq: number; kind: RunEvent['kind']; at: number; data: string }>(
      runEvents,
      'WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?',
      runId,
      after,
      limit,
    )
    return rows.map(({ seq, kind, at, data }) => ({ seq, runId, kind, at, data: parseOwn<RunEvent['data']>(data) }))
  }

  async lastRunEvent(runId: Id): Promise<number> {
    const last = await first<{ seq: number | null }>(
      this.sql,
      'SELECT max(seq) AS seq FROM run_events WHERE run = ?',
      runId,
    )
    return last?.seq ?? 0
  }

  async archived(of: { rolloutId: Id } | { sessionId: Id }): Promise<readonly ArchivedRecord[]> {
    const [column, value] = 'rolloutId' in of ? ['rollout', of.rolloutId] : ['session', of.sessionId]
    type Row = Omit<ArchivedRecord, 'sessionId' | 'rolloutId' | 'ofRollout'> & {
      readonly session: Id
      readonly rollout: Id | null
      readonly of_rollout: number
    }
    const rows = await wholeRows<Row>(this.sql, archived, `WHERE ${column} = ? ORDER BY session, count, n`, value)
    const last = rows.map((row): ArchivedRecord => {
      const { session: sessionId, rollout: rolloutId, of_rollout: ofRollout, home, folder, object, count, head } = row
      return { sessionId, rolloutId, ofRollout, home, folder, object, count, head }
    })
    return [...new Map(last.map((record) => [record.sessionId, record])).values()]
  }

  async namedObjects(folder: string, objects: readonly Digest[]): Promise<readonly Digest[]> {
    const { list } = this.sql.dialect
    const rows = await this.sql.all<{ object: Digest }>(
      `SELECT DISTINCT object FROM archived_sessions WHERE folder = ? AND object IN ${list}`,
      folder,
      this.sql.list(objects),
    )
    return rows.map(({ object }) => object)
  }

  fingerprint(digest: Digest): Promise<EngineFingerprint> {
    return this.#one<EngineFingerprint>(fingerprints, 'id', digest)
  }

  async verification(key: string): Promise<VerificationRecord | null> {
    return (await this.#records<VerificationRecord>(verifications, 'WHERE id = ?', key))[0] ?? null
  }

  async tokenTexts(tokenizer: string, ids: readonly number[]): Promise<ReadonlyMap<number, Uint8Array>> {
    const rows = await this.#rows<{ token: number; bytes: Uint8Array }>(
      tokenTexts,
      `WHERE tokenizer = ? AND token IN (SELECT CAST(value AS INTEGER) FROM ${this.sql.dialect.list} AS l)`,
      tokenizer,
      this.sql.list([...new Set(ids)]),
    )
    return new Map(rows.map(({ token, bytes }) => [token, Uint8Array.from(bytes)]))
  }

  resolve(prefix: string): Promise<readonly { readonly kind: 'run' | 'group' | 'rollout'; readonly id: Id }[]> {
    // '~' sorts behind every hexadecimal digit and dash.
    const range = [prefix, `${prefix}~`]
    return this.sql.all<{ kind: 'run' | 'group' | 'rollout'; id: Id }>(
      `SELECT 'run' AS kind, id FROM runs WHERE id >= ? AND id < ?
       UNION ALL SELECT 'group', id FROM groups WHERE id >= ? AND id < ?
       UNION ALL SELECT 'rollout', id FROM rollouts WHERE id >= ? AND id < ? LIMIT 100`,
      ...range,
      ...range,
      ...range,
    )
  }

  /** Closing the database is its opener's business. */
  close(): Promise<void> {
    return Promise.resolve()
  }

  /** The database's own clock, milliseconds since the epoch. */
  protected async databaseNow(): Promise<number> {
    return (await first<{ now: number }>(this.sql, `SELECT ${this.sql.dialect.now} AS now`))?.now ?? 0
  }

  async #one<T>(table: CoveredTable, column: string, key: string): Promise<T> {
    const [row] = await this.#rows<RecordRow>(table, `WHERE ${column} = ?`, key)
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no ${table.name.slice(0, -1)} ${key}`)
    return parseOwn<T>(row.record)
  }

  async #records<T>(table: CoveredTable, rest: string, ...values: readonly unknown[]): Promise<readonly T[]> {
    return (await this.#rows<RecordRow>(table, rest, ...values)).map((row) => parseOwn<T>(row.record))
  }

  #rows<Row extends object>(table: CoveredTable, rest: string, ...values: readonly unknown[]): Promise<readonly Row[]> {
    return wholeRows<Row>(this.sql, table, rest, ...values)
  }
}

/** A part of a run's configuration; null where there is none. */
function partOf({ config }: RunRecord, part: string): unknown {
  if (typeof config !== 'object' || config === null || !(part in config)) return null
  return (config as Readonly<Record<string, unknown>>)[part] ?? null
}

/** JSON that only this folder writes. */
function parseOwn<T>(text: string): T {
  return JSON.parse(text) as T
}
