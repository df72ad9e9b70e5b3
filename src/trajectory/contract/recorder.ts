/** The log: sessions, calls, segments, events. SQLite only, one writer thread. */
import type { Digest, Event, Id } from '../../core/index.ts'
import type { CallCommit, CallIntent, CallRecord, Delivery } from './call.ts'
import type { Segment, Span } from './segment.ts'
import type { SessionRecord } from './session.ts'

/** One session's whole log. */
export interface SessionLog {
  readonly session: SessionRecord
  readonly closedAt: number | null
  /** By seq. */
  readonly calls: readonly CallRecord[]
  /** Parents before children. */
  readonly segments: readonly Segment[]
  readonly spans: readonly Span[]
  readonly events: readonly Event[]
}

/** What of a session is read. */
export interface SessionReadOptions {
  /** Calls whose request body, reply and reply marks are read; the others come with empty ones. Default `all`. */
  readonly bodies?: 'all' | readonly Id[]
}

/** A session as far as a request can name it. */
export interface SessionKey {
  readonly id: Id
  readonly keyDigest: Digest
  readonly labels: Readonly<Record<string, string>>
  readonly closed: boolean
}

/** Reads of the log; also usable read-only while another process owns the store. */
export interface RecorderReader {
  /** In order of opening, or the newest first. A rollout of null: sessions that belong to none. */
  sessions(filter?: { rolloutId?: Id | null; limit?: number; newestFirst?: boolean }): Promise<readonly SessionRecord[]>
  /** The newest sessions, newest first. */
  sessionKeys(limit: number): Promise<readonly SessionKey[]>
  /** The session of a call. Throws `NOT_FOUND`. */
  sessionOfCall(callId: Id): Promise<Id>
  /** Throws `NOT_FOUND`; `STORE_CORRUPT` when a body does not have its digest. */
  session(id: Id, options?: SessionReadOptions): Promise<SessionLog>
  /** Null: the events that belong to no rollout and no session. */
  events(filter: { rolloutId: Id | null }): Promise<readonly Event[]>
  /** How far the log goes for this reader. It differs after each record; nothing else can be read from it. */
  mark(): Promise<string>
  close(): Promise<void>
}

/**
 * The log. A promise that resolves means: the fact survives `kill -9`. Reads here see everything accepted before them; a
 * reader of another process that is opened later sees it, one that was open already sees it a moment later, at once after
 * `flush` and `closeSession`.
 */
export interface Recorder extends RecorderReader {
  openSession(session: SessionRecord): Promise<void>
  closeSession(id: Id, at: number): Promise<void>
  /** Stores the intent. Throws `STORE_*`. */
  beginCall(intent: CallIntent): Promise<void>
  /** Stores answer, segments, spans, forks and outcome in one transaction. Idempotent by call id: a second commit is refused. */
  commitCall(commit: CallCommit): Promise<void>
  settleDelivery(callId: Id, delivery: Delivery): Promise<void>
  /** Marks an undelivered answer as replaced by a retry. */
  supersede(callId: Id, by: Id): Promise<void>
  appendEvent(event: Event): Promise<void>
  /**
   * Stores sessions of another store that are over, and events, all or nothing. Throws `STORE_CONFLICT` where a session is open, one of
   * them or of their calls is here already, or a segment hangs on one that is nowhere; nothing is stored then.
   */
  takeIn(sessions: readonly SessionLog[], events: readonly Event[]): Promise<void>
  /** Resolves when everything accepted so far is durable and every reader sees it. */
  flush(): Promise<void>
}
