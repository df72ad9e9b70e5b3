/** Reads of the catalogue over one connection. */
import type { Database } from 'better-sqlite3'
import {
  type Digest,
  type EngineFingerprint,
  type Id,
  PaddockError,
  type RolloutEnd,
  type Task,
  type Verdict,
} from '../../core/index.ts'
import type {
  GroupRecord,
  RolloutFilter,
  RolloutRecord,
  RolloutView,
  RolloutWork,
  RoundView,
  RunEvent,
  RunRecord,
  SlotRecord,
} from '../contract/index.ts'
import { Statements, wholeRows } from '../sqlite/index.ts'
import { carriedSlots, parseRound, parseSettled } from './rounds.ts'
import { catalogueTables, type CoveredTable } from './schema.ts'

interface RecordRow {
  readonly record: string
}

interface RolloutRow extends RecordRow {
  readonly id: Id
  readonly group: Id
}

const { fingerprints, groups, rollouts, runs, tasks, tokenTexts, rounds, slots, settled, runEvents, ...ofRollouts } =
  catalogueTables

/** The synchronous half of `CatalogueReader`: each row is checked against its digest. Methods throw `STORE_CORRUPT`. */
export class SqliteCatalogueReader {
  protected readonly statements: Statements

  constructor(db: Database) {
    this.statements = new Statements(db)
  }

  run(id: Id): RunRecord {
    return this.#one<RunRecord>(runs, 'id', id)
  }

  runs(limit = -1): readonly RunRecord[] {
    return this.#records<RunRecord>(runs, 'ORDER BY n DESC LIMIT ?', limit)
  }

  unfinishedRuns(of: 'all' | 'evals'): readonly RunRecord[] {
    const isOpen = `id NOT IN (SELECT run FROM closed_runs) AND record ->> '$.config.trainer' IS NOT NULL`
    const goesOn = `EXISTS (SELECT 1 FROM groups g JOIN group_rounds r ON r."group" = g.id WHERE g.run = runs.id
      AND NOT EXISTS (SELECT 1 FROM settled_rounds s WHERE s."group" = r."group" AND s.round = r.round))`
    const isOne = of === 'all' ? '' : `record ->> '$.config.eval' IS NOT NULL AND `
    return this.#records<RunRecord>(runs, `WHERE ${isOne}((${isOpen}) OR ${goesOn}) ORDER BY n DESC`)
  }

  task(digest: Digest): Task {
    return this.#one<Task>(tasks, 'task', digest)
  }

  tasks(): readonly Task[] {
    return this.#records<Task>(tasks, 'ORDER BY n')
  }

  group(id: Id): GroupRecord {
    return this.#one<GroupRecord>(groups, 'id', id)
  }

  groups(runId: Id): readonly GroupRecord[] {
    return this.#records<GroupRecord>(groups, 'WHERE run = ? ORDER BY n', runId)
  }

  rollout(id: Id): RolloutView {
    const [row] = this.#rows<RolloutRow>(rollouts, 'WHERE id = ?', id)
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no rollout ${id}`)
    return this.#view(row)
  }

  rollouts(filter: RolloutFilter): readonly RolloutView[] {
    const conditions: string[] = []
    const values: unknown[] = []
    for (const [condition, value] of [
      ['run = ?', filter.runId],
      ['"group" = ?', filter.groupId],
      [
        'slot IN (SELECT value FROM json_each(?))',
        filter.slots === undefined ? undefined : JSON.stringify(filter.slots),
      ],
      ['"group" IN (SELECT id FROM groups WHERE task = ?)', filter.taskDigest],
    ] as const) {
      if (value === undefined) continue
      conditions.push(condition)
      values.push(value)
    }
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
    return this.#rows<RolloutRow>(rollouts, `${where} ORDER BY n LIMIT ?`, ...values, filter.limit ?? -1).map((row) =>
      this.#view(row),
    )
  }

  rounds(groupId: Id): readonly RoundView[] {
    const of = <Row extends object>(table: CoveredTable, column: string): readonly Row[] =>
      this.#rows<Row>(table, `WHERE "group" = ? ORDER BY ${column}`, groupId)
    const known = of<RecordRow & { round: number; opened_at: number }>(rounds, 'round')
    if (known.length === 0) return []
    const lists = new Map(of<RecordRow & { round: number }>(settled, 'round').map((row) => [row.round, row.record]))
    const places = of<{ slot: number; round: number; job: Id; key: string | null }>(slots, 'slot')
    const now = this.databaseNow()
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

  runEvents(runId: Id, { after, limit }: { after: number; limit: number }): readonly RunEvent[] {
    const rows = this.#rows<{ seq: number; kind: RunEvent['kind']; at: number; data: string }>(
      runEvents,
      'WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?',
      runId,
      after,
      limit,
    )
    return rows.map(({ seq, kind, at, data }) => ({ seq, runId, kind, at, data: parseOwn<RunEvent['data']>(data) }))
  }

  lastRunEvent(runId: Id): number {
    return (
      this.statements.get<{ seq: number | null }>('SELECT max(seq) AS seq FROM run_events WHERE run = ?', runId)?.seq ??
      0
    )
  }

  fingerprint(digest: Digest): EngineFingerprint {
    return this.#one<EngineFingerprint>(fingerprints, 'id', digest)
  }

  tokenTexts(tokenizer: string, ids: readonly number[]): ReadonlyMap<number, Uint8Array> {
    const texts = new Map<number, Uint8Array>()
    for (const id of new Set(ids)) {
      const [row] = this.#rows<{ bytes: Uint8Array }>(tokenTexts, 'WHERE tokenizer = ? AND token = ?', tokenizer, id)
      if (row !== undefined) texts.set(id, Uint8Array.from(row.bytes))
    }
    return texts
  }

  resolve(prefix: string): readonly { readonly kind: 'run' | 'group' | 'rollout'; readonly id: Id }[] {
    // '~' sorts behind every hexadecimal digit and dash.
    const range = [prefix, `${prefix}~`]
    return this.statements.all<{ kind: 'run' | 'group' | 'rollout'; id: Id }>(
      `SELECT 'run' AS kind, id FROM runs WHERE id >= ? AND id < ?
       UNION ALL SELECT 'group', id FROM groups WHERE id >= ? AND id < ?
       UNION ALL SELECT 'rollout', id FROM rollouts WHERE id >= ? AND id < ? LIMIT 100`,
      ...range,
      ...range,
      ...range,
    )
  }

  /** The database's own clock, milliseconds since the epoch. */
  protected databaseNow(): number {
    return this.statements.get<{ now: number }>(`SELECT unixepoch('subsec') * 1000.0 AS now`)?.now ?? 0
  }

  #view({ record, group }: RolloutRow): RolloutView {
    const rollout = parseOwn<RolloutRecord>(record)
    const of = <Row extends object>(table: CoveredTable): readonly Row[] =>
      this.#rows<Row>(table, 'WHERE rollout = ? ORDER BY rowid', rollout.id)
    const { starts, works, ends, taints, labels, verdicts } = ofRollouts
    const [work] = of<RecordRow>(works)
    const [start] = of<{ at: number }>(starts)
    const [end] = of<{ at: number; end: RolloutEnd; detail: string }>(ends)
    return {
      ...rollout,
      taskDigest: this.group(group).taskDigest,
      work: work === undefined ? null : parseOwn<RolloutWork>(work.record),
      startedAt: start?.at ?? null,
      endedAt: end?.at ?? null,
      end: end?.end ?? null,
      endDetail: end?.detail ?? '',
      taints: of<{ cause: string }>(taints).map(({ cause }) => cause),
      verdicts: of<RecordRow>(verdicts).map((row) => parseOwn<Verdict>(row.record)),
      labels: Object.fromEntries(of<{ name: string; value: string }>(labels).map(({ name, value }) => [name, value])),
    }
  }

  #one<T>(table: CoveredTable, column: string, key: string): T {
    const [row] = this.#rows<RecordRow>(table, `WHERE ${column} = ?`, key)
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no ${table.name.slice(0, -1)} ${key}`)
    return parseOwn<T>(row.record)
  }

  #records<T>(table: CoveredTable, rest: string, ...values: readonly unknown[]): readonly T[] {
    return this.#rows<RecordRow>(table, rest, ...values).map((row) => parseOwn<T>(row.record))
  }

  #rows<Row extends object>(table: CoveredTable, rest: string, ...values: readonly unknown[]): readonly Row[] {
    return wholeRows<Row>(this.statements, table, rest, ...values)
  }
}

/** JSON that only this folder writes. */
function parseOwn<T>(text: string): T {
  return JSON.parse(text) as T
}
