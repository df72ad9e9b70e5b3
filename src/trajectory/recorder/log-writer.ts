/** Writes of the log, one connection, no transaction of its own: the thread groups them. */
import type { Database } from 'better-sqlite3'
import { type Event, type Id, PaddockError } from '../../core/index.ts'
import type { CallCommit, CallIntent, Delivery, Segment, SessionRecord } from '../contract.ts'
import { Statements, storedDigest, type StoredId, storedId, storedIdOrNull } from '../sqlite/index.ts'
import { asBase, type BaseCall, encodeTexts, remember } from './bodies.ts'
import { packOutcome } from './outcome.ts'
import { segmentColumns } from './segments.ts'
import { TextReader } from './texts.ts'
import type { CallRow } from './table-rows.ts'

/** Bodies kept as bases of the next difference, over all sessions. */
const maxKeptBytes = 128 * 2 ** 20

interface Session {
  readonly n: number
  closed: boolean
  recent: readonly BaseCall[]
}

/** The facts of an intent that are stored as JSON text, volatile ones in the middle. */
export type IntentFacts = Omit<CallIntent, 'id' | 'sessionId' | 'seq' | 'startedAt' | 'requestDigest' | 'body'>

/** Appends facts to an open log. Each method throws `PaddockError` and then has written nothing that counts. */
export class LogWriter {
  readonly #statements: Statements
  /** Least recently used first. */
  readonly #sessions = new Map<Id, Session>()
  #keptBytes = 0

  constructor(db: Database) {
    this.#statements = new Statements(db)
  }

  openSession(session: SessionRecord): void {
    this.#statements.run(
      'INSERT INTO sessions (id, rollout, created_at, record) VALUES (?, ?, ?, ?)',
      storedId(session.id),
      storedIdOrNull(session.rolloutId),
      session.createdAt,
      JSON.stringify(session),
    )
  }

  closeSession(id: Id, at: number): void {
    const session = this.#session(id)
    if (session.closed) return
    this.#statements.run('INSERT INTO session_ends (session, at) VALUES (?, ?)', session.n, at)
    this.#forget(id)
  }

  beginCall(intent: CallIntent): void {
    const session = this.#session(intent.sessionId)
    if (session.closed) throw new PaddockError('SESSION_CLOSED', `session ${intent.sessionId} is closed`)
    const { id, sessionId, seq, startedAt, requestDigest, body, headers, retryOf, ...stable } = intent
    const facts: IntentFacts = { ...stable, headers, retryOf }
    const texts = { facts: Buffer.from(JSON.stringify(facts)), body }
    const stored = encodeTexts(texts, session.recent)
    const n = this.#statements.run(
      `INSERT INTO calls (id, session, seq, started_at, request_digest, base, depth, facts_prefix, facts_suffix,
         body_prefix, body_suffix, body_sha256, pack) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      storedId(id),
      session.n,
      seq,
      startedAt,
      storedDigest(requestDigest),
      stored.base,
      stored.depth,
      stored.facts.prefix,
      stored.facts.suffix,
      stored.body.prefix,
      stored.body.suffix,
      stored.sha256,
      stored.pack,
    )
    const keyframe = session.recent.find((base) => base.n === stored.base)?.keyframe ?? null
    this.#keep(sessionId, session, remember(session.recent, asBase(n, stored.depth, texts, keyframe)))
  }

  commitCall(commit: CallCommit): void {
    const call = this.#call(commit.callId)
    if (this.#statements.get('SELECT 1 FROM outcomes WHERE call = ?', call.n) !== undefined) {
      throw new PaddockError('STORE_CONFLICT', `call ${commit.callId} has been committed before`)
    }
    const places = new Map<Id, { n: number; length: number }>()
    for (const segment of commit.segments) places.set(segment.id, this.#segment(segment, call, places))
    for (const choice of commit.choices) {
      if (choice.segmentId !== null && !places.has(choice.segmentId)) {
        throw new PaddockError('STORE_CONFLICT', `choice ${choice.index} of ${commit.callId} names a foreign segment`)
      }
    }
    if (commit.promptLeaf !== null && !places.has(commit.promptLeaf)) this.#storedSegment(commit.promptLeaf)
    this.#statements.run(
      'INSERT INTO outcomes (call, ended_at, pack) VALUES (?, ?, ?)',
      call.n,
      commit.endedAt,
      packOutcome(commit),
    )
  }

  settleDelivery(callId: Id, delivery: Delivery): void {
    this.#statements.run('INSERT INTO deliveries (call, delivery) VALUES (?, ?)', this.#call(callId).n, delivery)
  }

  supersede(callId: Id, by: Id): void {
    this.#statements.run('INSERT INTO supersessions (call, by) VALUES (?, ?)', this.#call(callId).n, storedId(by))
  }

  appendEvent(event: Event): void {
    this.#statements.run(
      'INSERT INTO events (id, at, rollout, session, event) VALUES (?, ?, ?, ?, ?)',
      storedId(event.id),
      event.at,
      storedIdOrNull(event.rolloutId),
      storedIdOrNull(event.sessionId),
      JSON.stringify(event),
    )
  }

  /** Forgets what was kept in memory, after a transaction was rolled back. */
  forgetAll(): void {
    this.#sessions.clear()
    this.#keptBytes = 0
  }

  #segment(
    segment: Segment,
    call: { readonly n: number; readonly session: number },
    places: ReadonlyMap<Id, { n: number; length: number }>,
  ): { n: number; length: number } {
    const columns = segmentColumns(segment)
    const parent =
      segment.parent === null
        ? null
        : (places.get(segment.parent.segmentId) ?? this.#storedSegment(segment.parent.segmentId))
    if (parent !== null && segment.parent !== null) {
      const { offset } = segment.parent
      if (!Number.isInteger(offset) || offset <= 0 || offset > parent.length) {
        throw new PaddockError('STORE_CONFLICT', `segment ${segment.id} hangs at ${offset} of ${parent.length} tokens`)
      }
    }
    const n = this.#statements.run(
      `INSERT INTO segments (id, session, call, choice, parent, parent_offset, origin, stop_cut, length, ids, logprobs,
         flags) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      storedId(segment.id),
      call.session,
      call.n,
      segment.choice,
      parent === null ? null : parent.n,
      segment.parent === null ? null : segment.parent.offset,
      columns.origin,
      segment.stopCut ? 1 : 0,
      segment.tokens.length,
      columns.ids,
      columns.logprobs,
      columns.flags,
    )
    return { n, length: segment.tokens.length }
  }

  #storedSegment(id: Id): { n: number; length: number } {
    const row = this.#statements.get<{ n: number; length: number }>(
      'SELECT n, length FROM segments WHERE id = ?',
      storedId(id),
    )
    if (row === undefined) throw new PaddockError('STORE_CONFLICT', `there is no segment ${id} to hang on`)
    return row
  }

  #call(id: Id): { readonly n: number; readonly session: number } {
    const row = this.#statements.get<{ n: number; session: number }>(
      'SELECT n, session FROM calls WHERE id = ?',
      storedId(id),
    )
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no call ${id}`)
    return row
  }

  #session(id: Id): Session {
    const known = this.#sessions.get(id)
    if (known !== undefined) return known
    const row = this.#statements.get<{ n: number; closed: number }>(
      `SELECT n, EXISTS (SELECT 1 FROM session_ends WHERE session = n) AS closed FROM sessions WHERE id = ?`,
      storedId(id) satisfies StoredId,
    )
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no session ${id}`)
    const session: Session = { n: row.n, closed: row.closed !== 0, recent: [] }
    const last = this.#statements.get<CallRow>('SELECT * FROM calls WHERE session = ? ORDER BY n DESC LIMIT 1', row.n)
    this.#keep(id, session, last === undefined ? [] : [new TextReader(this.#statements).base(last)])
    return session
  }

  #keep(id: Id, session: Session, recent: readonly BaseCall[]): void {
    this.#keptBytes += sizeOf(recent) - sizeOf(session.recent)
    session.recent = recent
    this.#sessions.delete(id)
    this.#sessions.set(id, session)
    for (const oldest of this.#sessions.keys()) {
      if (this.#keptBytes <= maxKeptBytes || oldest === id) break
      this.#forget(oldest)
    }
  }

  #forget(id: Id): void {
    const session = this.#sessions.get(id)
    if (session === undefined) return
    this.#keptBytes -= sizeOf(session.recent)
    this.#sessions.delete(id)
  }
}

function sizeOf(recent: readonly BaseCall[]): number {
  let sum = 0
  for (const base of recent) sum += base.facts.byteLength + base.body.byteLength + base.keyframe.body.byteLength
  return sum
}
