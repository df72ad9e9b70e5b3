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
import type { GroupRecord, RolloutRecord, RolloutView, RunRecord } from '../contract/index.ts'
import { Statements } from '../sqlite/index.ts'

interface RecordRow {
  readonly record: string
}

interface RolloutRow extends RecordRow {
  readonly task: string
  readonly started_at: number | null
  readonly ended_at: number | null
  readonly end: RolloutEnd | null
  readonly detail: string | null
}

const rolloutColumns = `
  SELECT rollouts.record, groups.task, rollout_starts.at AS started_at, rollout_ends.at AS ended_at,
    rollout_ends.end, rollout_ends.detail
  FROM rollouts JOIN groups ON groups.id = rollouts."group"
    LEFT JOIN rollout_starts ON rollout_starts.rollout = rollouts.id
    LEFT JOIN rollout_ends ON rollout_ends.rollout = rollouts.id`

/** The synchronous half of `CatalogueReader`. */
export class SqliteCatalogueReader {
  protected readonly statements: Statements

  constructor(db: Database) {
    this.statements = new Statements(db)
  }

  run(id: Id): RunRecord {
    return this.#one<RunRecord>('SELECT record FROM runs WHERE id = ?', 'run', id)
  }

  runs(limit = -1): readonly RunRecord[] {
    return this.#records<RunRecord>('SELECT record FROM runs ORDER BY n DESC LIMIT ?', limit)
  }

  task(digest: Digest): Task {
    return this.#one<Task>('SELECT record FROM tasks WHERE digest = ?', 'task', digest)
  }

  tasks(): readonly Task[] {
    return this.#records<Task>('SELECT record FROM tasks ORDER BY n')
  }

  group(id: Id): GroupRecord {
    return this.#one<GroupRecord>('SELECT record FROM groups WHERE id = ?', 'group', id)
  }

  groups(runId: Id): readonly GroupRecord[] {
    return this.#records<GroupRecord>('SELECT record FROM groups WHERE run = ? ORDER BY n', runId)
  }

  rollout(id: Id): RolloutView {
    const row = this.statements.get<RolloutRow>(`${rolloutColumns} WHERE rollouts.id = ?`, id)
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no rollout ${id}`)
    return this.#view(row)
  }

  rollouts(filter: { runId?: Id; groupId?: Id; taskDigest?: Digest; limit?: number }): readonly RolloutView[] {
    const conditions: string[] = []
    const values: unknown[] = []
    for (const [column, value] of [
      ['rollouts.run', filter.runId],
      ['rollouts."group"', filter.groupId],
      ['groups.task', filter.taskDigest],
    ] as const) {
      if (value === undefined) continue
      conditions.push(`${column} = ?`)
      values.push(value)
    }
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
    return this.statements
      .all<RolloutRow>(`${rolloutColumns} ${where} ORDER BY rollouts.n LIMIT ?`, ...values, filter.limit ?? -1)
      .map((row) => this.#view(row))
  }

  fingerprint(digest: Digest): EngineFingerprint {
    return this.#one<EngineFingerprint>('SELECT record FROM fingerprints WHERE digest = ?', 'fingerprint', digest)
  }

  tokenTexts(tokenizer: string, ids: readonly number[]): ReadonlyMap<number, Uint8Array> {
    const texts = new Map<number, Uint8Array>()
    for (const id of new Set(ids)) {
      const row = this.statements.get<{ bytes: Uint8Array }>(
        'SELECT bytes FROM token_texts WHERE tokenizer = ? AND token = ?',
        tokenizer,
        id,
      )
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

  #view(row: RolloutRow): RolloutView {
    const record = parseOwn<RolloutRecord>(row.record)
    const labels = this.statements.all<{ name: string; value: string }>(
      'SELECT name, value FROM labels WHERE rollout = ? ORDER BY n',
      record.id,
    )
    return {
      ...record,
      taskDigest: row.task,
      startedAt: row.started_at,
      endedAt: row.ended_at,
      end: row.end,
      endDetail: row.detail ?? '',
      taints: this.statements
        .all<{ cause: string }>('SELECT cause FROM taints WHERE rollout = ? ORDER BY n', record.id)
        .map((taint) => taint.cause),
      verdicts: this.#records<Verdict>('SELECT record FROM verdicts WHERE rollout = ? ORDER BY n', record.id),
      labels: Object.fromEntries(labels.map((label) => [label.name, label.value])),
    }
  }

  #one<T>(sql: string, what: string, key: string): T {
    const row = this.statements.get<RecordRow>(sql, key)
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no ${what} ${key}`)
    return parseOwn<T>(row.record)
  }

  #records<T>(sql: string, ...values: readonly unknown[]): readonly T[] {
    return this.statements.all<RecordRow>(sql, ...values).map((row) => parseOwn<T>(row.record))
  }
}

/** JSON that only this folder writes. */
function parseOwn<T>(text: string): T {
  return JSON.parse(text) as T
}
