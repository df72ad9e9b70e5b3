/** Whole sessions as entries of the log: what is taken over from another store, and how its bytes are read there. */
import Database from 'better-sqlite3'
import { type Event, type Id, PaddockError } from '../../core/index.ts'
import type { CallCommit, CallRecord, Segment, SessionLog, Span } from '../contract/index.ts'
import { frameOf, readFrame } from '../journal/index.ts'
import { migrate } from '../sqlite/index.ts'
import { encodeTexts } from './bodies.ts'
import { commitEntry, deliveryEntry, intentEntry, type LogEntry } from './entries.ts'
import { intentFacts } from './facts.ts'
import { Ledger, type SessionLedger } from './ledger.ts'
import { LogReader } from './log-reader.ts'
import { LogWriter } from './log-writer.ts'
import { entryOfLog } from './read-entry.ts'
import { logMigrations } from './schema.ts'

/** Sessions with all that is theirs, and events in their order. */
export interface WholeSessions {
  readonly sessions: readonly SessionLog[]
  readonly events: readonly Event[]
}

/** Its facts as frames of the journal. */
export interface FramedSessions {
  readonly frames: readonly Buffer[]
  /** Segments that these name and that no session here holds. */
  readonly foreign: readonly Id[]
}

/**
 * The facts of sessions that are over, as frames of the journal; the same sessions give the same bytes, in whichever store they are.
 * `foreign`: lengths of segments of other sessions. Throws `STORE_CONFLICT` where a session is open, a call in flight, or one fact
 * contradicts another.
 */
export function framesOf(whole: WholeSessions, foreign: ReadonlyMap<Id, number> = new Map()): FramedSessions {
  const ledger = new Ledger()
  const lengths = new Map(foreign)
  for (const { segments } of whole.sessions) for (const { id, tokens } of segments) lengths.set(id, tokens.length)
  const unknown = new Set<Id>()
  const frames = whole.sessions.flatMap((log) => entriesOf(log, ledger, lengths, unknown).map(frameOf))
  for (const event of whole.events) frames.push(frameOf({ head: { op: 'appendEvent', event }, parts: [] }))
  return { frames, foreign: [...unknown] }
}

/**
 * What frames say, read as a log reads it: they are written into one in memory, and every record is checked on its way out.
 * Throws `STORE_CORRUPT` for bytes that no log can hold.
 */
export function sessionsIn(frames: readonly Buffer[]): WholeSessions {
  scratch ??= new ScratchLog()
  return scratch.read(frames)
}

let scratch: ScratchLog | null = null

/** A log in memory that is empty again after each use. Its schema and its statements are made once, since they cost more than a short rollout. */
class ScratchLog {
  readonly #db = new Database(':memory:')
  readonly #writer: LogWriter
  readonly #reader: LogReader

  constructor() {
    this.#db.pragma('foreign_keys = OFF')
    migrate(this.#db, logMigrations, 0)
    this.#writer = new LogWriter(this.#db)
    this.#reader = new LogReader(this.#db)
  }

  read(frames: readonly Buffer[]): WholeSessions {
    this.#db.exec('BEGIN')
    try {
      for (const frame of frames) {
        const entry = readFrame(frame)
        if (entry === null) throw new PaddockError('STORE_CORRUPT', 'a fact does not have its checksum')
        this.#writer.write(entryOfLog(entry))
      }
      this.#writer.settle()
      const sessions = this.#reader.sessions().map(({ id }) => ({ ...this.#reader.session(id), events: [] }))
      return { sessions, events: this.#reader.allEvents() }
    } finally {
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK')
      this.#writer.forgetAll()
    }
  }
}

function entriesOf(
  { session: record, closedAt, calls, segments, spans }: SessionLog,
  ledger: Ledger,
  lengths: ReadonlyMap<Id, number>,
  unknown: Set<Id>,
): readonly LogEntry[] {
  const entries: LogEntry[] = [{ head: { op: 'openSession', session: record }, parts: [] }]
  ledger.opened(record)
  const session = ledger.session(record.id)
  if (session === undefined || closedAt === null)
    throw new PaddockError('STORE_CONFLICT', `session ${record.id} is not over`)
  for (const call of calls) entries.push(begun(session, ledger, call))
  for (const call of asCommitted(calls, segments)) {
    const commit = commitOf(call, segments, spans)
    const own = ledger.call(commit.callId)
    if (own === undefined) throw new PaddockError('INTERNAL', `call ${commit.callId} was not begun`)
    for (const id of ledger.checkCommit(own, commit, lengths)) unknown.add(id)
    entries.push(commitEntry(commit))
    ledger.committed(own, commit)
  }
  for (const { intent, delivery, superseded } of calls) {
    if (delivery !== 'unknown') entries.push(deliveryEntry(intent.id, delivery))
    if (!superseded) continue
    const by = calls.findLast(({ intent: later }) => later.retryOf === intent.id)?.intent.id ?? intent.id
    entries.push({ head: { op: 'supersede', id: intent.id, by }, parts: [] })
  }
  entries.push({ head: { op: 'closeSession', id: record.id, at: closedAt }, parts: [] })
  return entries
}

function begun(session: SessionLedger, ledger: Ledger, { intent }: CallRecord): LogEntry {
  ledger.checkIntent(session, intent)
  session.facts = intentFacts(intent, session.facts)
  const texts = { facts: session.facts.text, body: intent.body }
  const stored = encodeTexts(texts, session.recent)
  ledger.began(session, intent, texts, stored)
  return intentEntry(intent, stored)
}

/** Calls in the order in which their segments came, so that parents stay before children; those without any behind them. */
function asCommitted(calls: readonly CallRecord[], segments: readonly Segment[]): readonly CallRecord[] {
  const byId = new Map(calls.map((call) => [call.intent.id, call]))
  const ordered = new Set<CallRecord>()
  for (const { callId } of segments) {
    const call = callId === null ? undefined : byId.get(callId)
    if (call !== undefined) ordered.add(call)
  }
  for (const call of calls) ordered.add(call)
  return [...ordered]
}

function commitOf(call: CallRecord, segments: readonly Segment[], spans: readonly Span[]): CallCommit {
  const { commit, intent } = call
  if (commit === null) throw new PaddockError('STORE_CONFLICT', `call ${intent.id} is in flight`)
  const own = segments.filter(({ callId }) => callId === intent.id)
  const ids = new Set(own.map(({ id }) => id))
  return { ...commit, segments: own, spans: spans.filter(({ segmentId }) => ids.has(segmentId)) }
}
