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
import { fingerprintDigest } from './fingerprint.ts'

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
    this.statements.run(
      'INSERT INTO tasks (digest, record) VALUES (?, ?) ON CONFLICT DO NOTHING',
      task.digest,
      JSON.stringify(task),
    )
  }

  putRun(run: RunRecord): void {
    this.#put('runs', run.id, run, () => this.#insert('INSERT INTO runs (id, record) VALUES (?, ?)', run.id, run))
  }

  putGroup(group: GroupRecord): void {
    this.#put('groups', group.id, group, () => {
      this.#insert(
        'INSERT INTO groups (id, run, task, record) VALUES (?, ?, ?, ?)',
        group.id,
        group.runId,
        group.taskDigest,
        group,
      )
    })
  }

  putRollout(rollout: RolloutRecord): void {
    this.#put('rollouts', rollout.id, rollout, () => {
      this.#insert(
        'INSERT INTO rollouts (id, run, "group", slot, attempt, record) VALUES (?, ?, ?, ?, ?, ?)',
        rollout.id,
        rollout.runId,
        rollout.groupId,
        rollout.slot,
        rollout.attempt,
        rollout,
      )
    })
  }

  startRollout(id: Id, at: number): void {
    this.#once(id, () => {
      const { startedAt } = this.rollout(id)
      if (startedAt !== null) return startedAt === at
      this.statements.run('INSERT INTO rollout_starts (rollout, at) VALUES (?, ?)', id, at)
      return true
    })
  }

  endRollout(id: Id, at: number, end: RolloutEnd, detail: string): void {
    this.#once(id, () => {
      const known = this.rollout(id)
      if (known.end !== null) return known.end === end && known.endDetail === detail && known.endedAt === at
      this.statements.run(
        'INSERT INTO rollout_ends (rollout, at, end, detail) VALUES (?, ?, ?, ?)',
        id,
        at,
        end,
        detail,
      )
      return true
    })
  }

  taint(rolloutId: Id, cause: string): void {
    this.#known(rolloutId)
    this.statements.run('INSERT INTO taints (rollout, cause) VALUES (?, ?) ON CONFLICT DO NOTHING', rolloutId, cause)
  }

  label(rolloutId: Id, name: string, value: string): void {
    this.#known(rolloutId)
    this.statements.run('INSERT INTO labels (rollout, name, value) VALUES (?, ?, ?)', rolloutId, name, value)
  }

  appendVerdict(verdict: Verdict): void {
    this.#put('verdicts', verdict.id, verdict, () => {
      const { verdicts } = this.rollout(verdict.rolloutId)
      if (verdict.supersedes !== null && !verdicts.some((earlier) => earlier.id === verdict.supersedes)) {
        throw new PaddockError('STORE_CONFLICT', `verdict ${verdict.id} supersedes one that the rollout does not have`)
      }
      this.#insert(
        'INSERT INTO verdicts (id, rollout, record) VALUES (?, ?, ?)',
        verdict.id,
        verdict.rolloutId,
        verdict,
      )
    })
  }

  putFingerprint(fingerprint: EngineFingerprint): Digest {
    const digest = fingerprintDigest(fingerprint)
    this.statements.run(
      'INSERT INTO fingerprints (digest, record) VALUES (?, ?) ON CONFLICT DO NOTHING',
      digest,
      JSON.stringify(fingerprint),
    )
    return digest
  }

  putTokenTexts(tokenizer: string, texts: ReadonlyMap<number, Uint8Array>): void {
    this.#db.transaction(() => {
      for (const [token, bytes] of texts) {
        this.statements.run(
          'INSERT INTO token_texts (tokenizer, token, bytes) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
          tokenizer,
          token,
          bytes,
        )
      }
    })()
  }

  #insert(sql: string, ...values: readonly unknown[]): void {
    this.statements.run(sql, ...values.slice(0, -1), JSON.stringify(values.at(-1)))
  }

  #put(table: 'runs' | 'groups' | 'rollouts' | 'verdicts', id: Id, record: unknown, insert: () => void): void {
    this.#db
      .transaction(() => {
        const known = this.statements.get<{ record: string }>(`SELECT record FROM ${table} WHERE id = ?`, id)
        if (known === undefined) insert()
        else if (known.record !== JSON.stringify(record)) {
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
