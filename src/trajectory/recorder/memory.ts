import type { Database } from 'better-sqlite3'
import { type Id, PaddockError } from '../../core/index.ts'
import { readId, Statements, storedId, type StoredId } from '../sqlite/index.ts'
import type { BaseCall } from './bodies.ts'
import type { HeadsBook } from './heads-book.ts'
import { sessionOfCall } from './schema.ts'
import { unpackSegmentList } from './segment-list.ts'
import type { CallEndRow, CallRow } from './table-rows.ts'
import { TextReader } from './texts.ts'

/** What the log holds of a session, as far as it decides which further facts fit. */
export interface RememberedSession {
  readonly closed: boolean
  readonly seqs: readonly number[]
  readonly calls: readonly (readonly [id: Id, committed: boolean, superseded: boolean])[]
  readonly segments: readonly (readonly [id: Id, length: number])[]
  /** The last call, as a base for the next body. */
  readonly last: BaseCall | null
}

/** Answers for sessions that the recorder does not have in mind: those of an earlier owner, and long quiet ones. */
export class Memory {
  readonly #statements: Statements

  readonly #book: Pick<HeadsBook, 'mustBeWhole'>

  constructor(db: Database, book: Pick<HeadsBook, 'mustBeWhole'>) {
    this.#statements = new Statements(db)
    this.#book = book
  }

  /** Throws `NOT_FOUND`, and `STORE_CORRUPT` where the session has lost records: nothing is put in their place. */
  session(id: Id): RememberedSession {
    const row = this.#statements.get<{ n: number; closed: number }>(
      'SELECT n, EXISTS (SELECT 1 FROM session_ends WHERE session = n) AS closed FROM sessions WHERE id = ?',
      storedId(id),
    )
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no session ${id}`)
    this.#book.mustBeWhole(row.n, storedId(id))
    const calls = this.#statements.all<{ id: StoredId; seq: number; committed: number; superseded: number }>(
      `SELECT id, seq, EXISTS (SELECT 1 FROM call_ends WHERE call = n) AS committed,
         EXISTS (SELECT 1 FROM supersessions WHERE call = n) AS superseded FROM calls WHERE session = ?
       UNION ALL SELECT id, seq, 1, superseded OR EXISTS (SELECT 1 FROM supersessions WHERE call = n)
         FROM archived_calls WHERE session = ?`,
      row.n,
      row.n,
    )
    const ends = this.#statements.all<Pick<CallEndRow, 'segments'>>(
      `SELECT call_ends.segments FROM calls JOIN call_ends ON call = n WHERE session = ?
       UNION ALL SELECT segments FROM archived_calls WHERE session = ?`,
      row.n,
      row.n,
    )
    const segments = ends.flatMap((end) => unpackSegmentList(end.segments))
    const last = this.#statements.get<CallRow>('SELECT * FROM calls WHERE session = ? ORDER BY n DESC LIMIT 1', row.n)
    return {
      closed: row.closed !== 0,
      seqs: calls.map((call) => call.seq),
      calls: calls.map((call) => [readId(call.id), call.committed !== 0, call.superseded !== 0]),
      segments: segments.map(({ id: segment, length }) => [segment, length]),
      last: last === undefined ? null : new TextReader(this.#statements).base(last),
    }
  }

  /** Throws `NOT_FOUND`. */
  sessionOfCall(id: Id): Id {
    const row = this.#statements.get<{ id: StoredId }>(sessionOfCall, storedId(id))
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no call ${id}`)
    return readId(row.id)
  }

  /**
   * Of a segment of any session: one of a session that another was forked from may be a parent. Null: none. Looks through
   * the lists of all calls: a segment of a session that is in mind is not asked for, and no index is kept for the others.
   */
  segmentLength(id: Id): number | null {
    const stored = storedId(id)
    const bytes = typeof stored === 'string' ? Buffer.from(stored) : stored
    const holding = this.#statements.all<Pick<CallEndRow, 'segments'>>(
      `SELECT segments FROM call_ends WHERE instr(segments, ?) > 0
       UNION ALL SELECT segments FROM archived_calls WHERE instr(segments, ?) > 0`,
      bytes,
      bytes,
    )
    for (const end of holding) {
      const found = unpackSegmentList(end.segments).find((segment) => segment.id === id)
      if (found !== undefined) return found.length
    }
    return null
  }
}
