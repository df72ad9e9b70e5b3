import { type Id, PaddockError } from '../../core/index.ts'
import type { CallCommit, CallIntent, SessionRecord } from '../contract/index.ts'
import { asBase, type BaseCall, type EncodedTexts, remember, type Texts } from './bodies.ts'
import type { RememberedSession } from './memory.ts'

/** Bodies kept as bases of the next difference, over all sessions. */
const maxKeptBytes = 128 * 2 ** 20
/** What the rest of a session's ledger weighs, roughly, per call. */
const bytesPerCall = 1024

interface KnownCall {
  committed: boolean
  superseded: boolean
}

/** What decides which further facts of a session fit. */
export interface SessionLedger {
  readonly id: Id
  closed: boolean
  readonly seqs: Set<number>
  readonly calls: Map<Id, KnownCall>
  /** Lengths. */
  readonly segments: Map<Id, number>
  recent: readonly BaseCall[]
}

/**
 * The sessions that the recorder has in mind: a fact that contradicts the log is refused before it is written, without
 * asking the database. What is not in mind is not unknown: the writer thread tells it.
 */
export class Ledger {
  /** Least recently used first. */
  readonly #sessions = new Map<Id, SessionLedger>()
  readonly #byCall = new Map<Id, SessionLedger>()
  #keptBytes = 0

  opened(session: SessionRecord): void {
    if (this.#sessions.has(session.id)) {
      throw new PaddockError('STORE_CONFLICT', `session ${session.id} has been opened before`)
    }
    this.#sessions.set(session.id, {
      id: session.id,
      closed: false,
      seqs: new Set(),
      calls: new Map(),
      segments: new Map(),
      recent: [],
    })
  }

  /** Takes up what the writer thread told. */
  recalled(id: Id, { closed, seqs, calls, segments, last }: RememberedSession): SessionLedger {
    const known = this.#sessions.get(id)
    if (known !== undefined) return known
    const session: SessionLedger = {
      id,
      closed,
      seqs: new Set(seqs),
      calls: new Map(calls.map(([call, committed, superseded]) => [call, { committed, superseded }])),
      segments: new Map(segments),
      recent: [],
    }
    this.#sessions.set(id, session)
    for (const call of session.calls.keys()) this.#byCall.set(call, session)
    this.#keptBytes += weight(session)
    if (last !== null) this.#keep(session, [last])
    return session
  }

  /** Undefined: not in mind. */
  session(id: Id): SessionLedger | undefined {
    return this.#sessions.get(id)
  }

  /** Undefined: not in mind. */
  sessionOfCall(id: Id): SessionLedger | undefined {
    return this.#byCall.get(id)
  }

  /** Throws `SESSION_CLOSED`, `STORE_CONFLICT`. */
  checkIntent(session: SessionLedger, intent: CallIntent): void {
    if (session.closed) throw new PaddockError('SESSION_CLOSED', `session ${session.id} is closed`)
    if (session.seqs.has(intent.seq)) {
      throw new PaddockError('STORE_CONFLICT', `session ${session.id} has a call ${intent.seq} already`)
    }
    if (this.#byCall.has(intent.id)) {
      throw new PaddockError('STORE_CONFLICT', `call ${intent.id} has been begun before`)
    }
  }

  began(session: SessionLedger, intent: CallIntent, texts: Texts, stored: EncodedTexts): void {
    session.seqs.add(intent.seq)
    session.calls.set(intent.id, { committed: false, superseded: false })
    this.#byCall.set(intent.id, session)
    this.#keptBytes += bytesPerCall
    const keyframe = session.recent.find((base) => base.id === stored.base)?.keyframe ?? null
    const call = { id: intent.id, depth: stored.depth, facts: texts.facts, body: texts.body, digest: stored.digest }
    this.#keep(session, remember(session.recent, asBase(call, keyframe)))
  }

  /**
   * Throws `STORE_CONFLICT`. Segments that the commit names and that the session does not hold are given back: they may
   * belong to the session that it was forked from.
   */
  checkCommit(session: SessionLedger, commit: CallCommit, foreign: ReadonlyMap<Id, number>): readonly Id[] {
    if (session.calls.get(commit.callId)?.committed === true) {
      throw new PaddockError('STORE_CONFLICT', `call ${commit.callId} has been committed before`)
    }
    const own = new Map<Id, number>()
    const unknown: Id[] = []
    const lengthOf = (id: Id): number | undefined => own.get(id) ?? session.segments.get(id) ?? foreign.get(id)
    for (const { id, parent, tokens } of commit.segments) {
      if (session.segments.has(id) || own.has(id)) {
        throw new PaddockError('STORE_CONFLICT', `segment ${id} has been stored before`)
      }
      if (parent !== null) {
        const length = lengthOf(parent.segmentId)
        if (length === undefined) unknown.push(parent.segmentId)
        else if (!Number.isInteger(parent.offset) || parent.offset <= 0 || parent.offset > length) {
          throw new PaddockError('STORE_CONFLICT', `segment ${id} hangs at ${parent.offset} of ${length} tokens`)
        }
      }
      own.set(id, tokens.length)
    }
    for (const choice of commit.choices) {
      if (choice.segmentId !== null && !own.has(choice.segmentId)) {
        throw new PaddockError('STORE_CONFLICT', `choice ${choice.index} of ${commit.callId} names a foreign segment`)
      }
    }
    if (commit.promptLeaf !== null && lengthOf(commit.promptLeaf) === undefined) unknown.push(commit.promptLeaf)
    return unknown
  }

  committed(session: SessionLedger, commit: CallCommit): void {
    const call = session.calls.get(commit.callId)
    if (call !== undefined) call.committed = true
    for (const segment of commit.segments) session.segments.set(segment.id, segment.tokens.length)
  }

  /** Throws `STORE_CONFLICT`. */
  superseded(session: SessionLedger, id: Id): void {
    const call = session.calls.get(id)
    if (call?.superseded === true) throw new PaddockError('STORE_CONFLICT', `call ${id} has been superseded before`)
    if (call !== undefined) call.superseded = true
  }

  /** Drops a session from mind; nothing is lost. */
  forget(session: SessionLedger): void {
    if (!this.#sessions.delete(session.id)) return
    for (const call of session.calls.keys()) this.#byCall.delete(call)
    this.#keptBytes -= weight(session)
  }

  /** After a write that failed: what is in mind may be more than what is written. */
  forgetAll(): void {
    this.#sessions.clear()
    this.#byCall.clear()
    this.#keptBytes = 0
  }

  #keep(session: SessionLedger, recent: readonly BaseCall[]): void {
    this.#keptBytes += weightOf(recent) - weightOf(session.recent)
    session.recent = recent
    this.#sessions.delete(session.id)
    this.#sessions.set(session.id, session)
    for (const oldest of this.#sessions.values()) {
      if (this.#keptBytes <= maxKeptBytes || oldest === session) break
      this.forget(oldest)
    }
  }
}

function weight(session: SessionLedger): number {
  return bytesPerCall * session.calls.size + weightOf(session.recent)
}

function weightOf(recent: readonly BaseCall[]): number {
  let sum = 0
  for (const base of recent) sum += base.facts.byteLength + base.body.byteLength + base.keyframe.body.byteLength
  return sum
}
