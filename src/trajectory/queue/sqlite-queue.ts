import type { Database } from 'better-sqlite3'
import type { Id } from '../../core/index.ts'
import type { Lease } from '../contract/index.ts'
import { Statements } from '../sqlite/index.ts'

/** The database's own clock, milliseconds since the epoch. */
const now = `(unixepoch('subsec') * 1000.0)`

interface LeaseRow {
  readonly id: Id
  readonly topic: string
  readonly payload: string
  readonly token: number
  readonly expires_at: number
}

/**
 * The synchronous half of `Queue`. A claim counts the item's token up; the holder of an older token, or of one whose
 * time is over, can no longer extend, acknowledge or give back.
 */
export class SqliteQueue {
  readonly #db: Database
  readonly #statements: Statements

  constructor(db: Database) {
    this.#db = db
    this.#statements = new Statements(db)
  }

  enqueue(
    topic: string,
    items: readonly { readonly id: Id; readonly payload: unknown; readonly priority?: number }[],
  ): void {
    this.#db.transaction(() => {
      for (const item of items) {
        this.#statements.run(
          `INSERT INTO queue_items (id, topic, payload, priority, available_at) VALUES (?, ?, ?, ?, ${now})
           ON CONFLICT (id) DO NOTHING`,
          item.id,
          topic,
          JSON.stringify(item.payload ?? null),
          item.priority ?? 0,
        )
      }
    })()
  }

  claim(topic: string, owner: string, options: { limit: number; ttlMs: number }): readonly Lease[] {
    const rows = this.#statements.all<LeaseRow & { n: number; priority: number }>(
      `UPDATE queue_items SET owner = ?, token = token + 1, expires_at = ${now} + ?
       WHERE n IN (
         SELECT n FROM queue_items
         WHERE topic = ? AND done = 0 AND available_at <= ${now} AND (expires_at IS NULL OR expires_at <= ${now})
         ORDER BY priority DESC, n LIMIT ?
       ) RETURNING n, priority, id, topic, payload, token, expires_at`,
      owner,
      options.ttlMs,
      topic,
      options.limit,
    )
    return rows
      .toSorted((a, b) => b.priority - a.priority || a.n - b.n)
      .map((row) => ({
        itemId: row.id,
        topic: row.topic,
        payload: JSON.parse(row.payload) as unknown,
        token: row.token,
        attempt: row.token,
        expiresAt: row.expires_at,
      }))
  }

  extend(lease: Lease, ttlMs: number): boolean {
    return this.#held(lease, `expires_at = ${now} + ?`, [ttlMs])
  }

  ack(lease: Lease): boolean {
    return this.#held(lease, 'done = 1, owner = NULL, expires_at = NULL', [])
  }

  requeue(lease: Lease, delayMs = 0): boolean {
    return this.#held(lease, `owner = NULL, expires_at = NULL, available_at = ${now} + ?`, [delayMs])
  }

  depth(topic: string): { readonly waiting: number; readonly leased: number; readonly done: number } {
    const row = this.#statements.get<{ waiting: number; leased: number; done: number }>(
      `SELECT total(done = 0 AND (expires_at IS NULL OR expires_at <= ${now})) AS waiting,
         total(done = 0 AND expires_at > ${now}) AS leased, total(done) AS done
       FROM queue_items WHERE topic = ?`,
      topic,
    )
    return row ?? { waiting: 0, leased: 0, done: 0 }
  }

  #held(lease: Lease, change: string, values: readonly unknown[]): boolean {
    const row = this.#statements.get<{ n: number }>(
      `UPDATE queue_items SET ${change} WHERE id = ? AND token = ? AND done = 0 AND expires_at > ${now} RETURNING n`,
      ...values,
      lease.itemId,
      lease.token,
    )
    return row !== undefined
  }
}
