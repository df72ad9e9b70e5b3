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
import type { GroupRecord, RolloutRecord, RunRecord } from '../contract/index.ts'
import { SqliteCatalogueReader } from './catalogue-reader.ts'
import { type ColumnValue, insertOf, rowDigest } from '../sqlite/index.ts'
import { fingerprintDigest } from './fingerprint.ts'
import { catalogueTables, type CoveredTable } from './schema.ts'

const { ends, fingerprints, groups, labels, rollouts, runs, starts, taints, tasks, tokenTexts } = catalogueTables
const verdictsTable = catalogueTables.verdicts
const orNothing = 'ON CONFLICT DO NOTHING'

/**
 * The synchronous half of `Catalogue`: each write is a transaction of its own. Putting what is there already is
 * nothing; putting something else under the same id throws `STORE_CONFLICT`.
 */
export class SqliteCatalogue extends SqliteCatalogueReader {
  readonly #db: Database

  constructor(db: Database) {
    super(db)
    this.#db = db
  }

  /** The source is where a task was seen first: it is not part of its identity. */
  putTask(task: Task): void {
    this.#insert(tasks, { task: task.digest, record: JSON.stringify(task) }, orNothing)
  }

  putRun(run: RunRecord): void {
    this.#put('runs', run.id, run, (record) => this.#insert(runs, { id: run.id, record }))
  }

  putGroup(group: GroupRecord): void {
    const { id, runId: run, taskDigest: task } = group
    this.#put('groups', id, group, (record) => this.#insert(groups, { id, run, task, record }))
  }

  putRollout(rollout: RolloutRecord): void {
    const { id, runId: run, groupId: group, slot, attempt } = rollout
    this.#put('rollouts', id, rollout, (record) => this.#insert(rollouts, { id, run, group, slot, attempt, record }))
  }

  startRollout(id: Id, at: number): void {
    this.#once(id, () => {
      const { startedAt } = this.rollout(id)
      if (startedAt !== null) return startedAt === at
      this.#insert(starts, { rollout: id, at })
      return true
    })
  }

  endRollout(id: Id, at: number, end: RolloutEnd, detail: string): void {
    this.#once(id, () => {
      const known = this.rollout(id)
      if (known.end !== null) return known.end === end && known.endDetail === detail && known.endedAt === at
      this.#insert(ends, { rollout: id, at, end, detail })
      return true
    })
  }

  taint(rolloutId: Id, cause: string): void {
    this.#known(rolloutId)
    this.#insert(taints, { rollout: rolloutId, cause }, orNothing)
  }

  label(rolloutId: Id, name: string, value: string): void {
    this.#known(rolloutId)
    this.#insert(labels, { rollout: rolloutId, name, value })
  }

  appendVerdict(verdict: Verdict): void {
    this.#put('verdicts', verdict.id, verdict, (record) => {
      const { verdicts } = this.rollout(verdict.rolloutId)
      if (verdict.supersedes !== null && !verdicts.some((earlier) => earlier.id === verdict.supersedes)) {
        throw new PaddockError('STORE_CONFLICT', `verdict ${verdict.id} supersedes one that the rollout does not have`)
      }
      this.#insert(verdictsTable, { id: verdict.id, rollout: verdict.rolloutId, record })
    })
  }

  putFingerprint(fingerprint: EngineFingerprint): Digest {
    const digest = fingerprintDigest(fingerprint)
    this.#insert(fingerprints, { id: digest, record: JSON.stringify(fingerprint) }, orNothing)
    return digest
  }

  putTokenTexts(tokenizer: string, texts: ReadonlyMap<number, Uint8Array>): void {
    this.#db.transaction(() => {
      for (const [token, bytes] of texts) {
        this.#insert(tokenTexts, { tokenizer, token, bytes }, orNothing)
      }
    })()
  }

  /** A row with its digest; `conflict` says what happens where the row is there already. */
  #insert<Column extends string>(
    table: CoveredTable<Column>,
    row: Readonly<Record<Column, ColumnValue>>,
    conflict = '',
  ): void {
    const values = table.columns.map((column) => row[column])
    this.statements.run(insertOf(table, [], conflict), ...values, rowDigest(values))
  }

  #put(
    table: 'runs' | 'groups' | 'rollouts' | 'verdicts',
    id: Id,
    record: unknown,
    insert: (record: string) => void,
  ): void {
    const text = JSON.stringify(record)
    this.#db
      .transaction(() => {
        const known = this.statements.get<{ record: string }>(`SELECT record FROM ${table} WHERE id = ?`, id)
        if (known === undefined) insert(text)
        else if (known.record !== text) {
          throw new PaddockError('STORE_CONFLICT', `another record stands under ${id} in ${table}`)
        }
      })
      .immediate()
  }

  #once(id: Id, write: () => boolean): void {
    this.#db
      .transaction(() => {
        if (!write()) throw new PaddockError('STORE_CONFLICT', `rollout ${id} has started or ended otherwise`)
      })
      .immediate()
  }

  #known(id: Id): void {
    if (this.statements.get('SELECT 1 FROM rollouts WHERE id = ?', id) === undefined) {
      throw new PaddockError('NOT_FOUND', `there is no rollout ${id}`)
    }
  }
}
