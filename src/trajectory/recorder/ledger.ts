import { type Id, PaddockError } from '../../core/index.ts'
import type { CallCommit, CallIntent, SessionRecord } from '../contract/index.ts'
import { asBase, type BaseCall, type EncodedTexts, remember, type Texts } from './bodies.ts'
import type { FactsText } from './facts.ts'
import type { RememberedSession } from './memory.ts'

/** Bodies kept as bases of the next difference, over all sessions. */
const maxKeptBytes = 128 * 2 ** 20
/** What the rest of a session's ledger weighs, roughly, per call. */
const bytesPerCall = 1024

interface KnownCall {
  readonly session: SessionLedger
  committed: boolean
  superseded: boolean
}

/** What decides which further facts of a session fit. */
export interface SessionLedger {
  readonly id: Id
  closed: boolean
  readonly seqs: SeqSet
  readonly calls: Id[]
  /** Lengths. */
  readonly segments: Map<Id, number>
  recent: readonly BaseCall[]
  /** Of the last intent. */
  facts: FactsText | null
}

/**
 * The sessions that the recorder has in mind: a fact that contradicts the log is refused before it is written, without
 * asking the database. What is not in mind is not unknown: the writer thread tells it.
 */
export class Ledger {
  /** Least recently used first. */
  readonly #sessions = new Map<Id, SessionLedger>()
  readonly #calls = new Map<Id, KnownCall>()
  #keptBytes = 0

  opened(session: SessionRecord): void {
    if (this.#sessions.has(session.id)) {
      throw new PaddockError('STORE_CONFLICT', `session ${session.id} has been opened before`)
    }
    this.#sessions.set(session.id, {
      id: session.id,
      closed: false,
      seqs: new SeqSet(),
      calls: [],
      segments: new Map(),
      recent: [],
      facts: null,
    })
  }

  /** Takes up what the writer thread told. */
  recalled(id: Id, { closed, seqs, calls, segments, last }: RememberedSession): SessionLedger {
    const known = this.#sessions.get(id)
    if (known !== undefined) return known
    const session: SessionLedger = {
      id,
      closed,
      seqs: new SeqSet(),
      calls: calls.map(([call]) => call),
      segments: new Map(segments),
      recent: [],
      facts: null,
    }
    this.#sessions.set(id, session)
    for (const seq of seqs) session.seqs.add(seq)
    for (const [call, committed, superseded] of calls) this.#calls.set(call, { session, committed, superseded })
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
    return this.#calls.get(id)?.session
  }

  /** Throws `SESSION_CLOSED`, `STORE_CONFLICT`. */
  checkIntent(session: SessionLedger, intent: CallIntent): void {
    if (session.closed) throw new PaddockError('SESSION_CLOSED', `session ${session.id} is closed`)
    if (session.seqs.has(intent.seq)) {
      throw new PaddockError('STORE_CONFLICT', `session ${session.id} has a call ${intent.seq} already`)
    }
    if (this.#calls.has(intent.id)) {
      throw new PaddockError('STORE_CONFLICT', `call ${intent.id} has been begun before`)
    }
  }

  began(session: SessionLedger, intent: CallIntent, texts: Texts, stored: EncodedTexts): void {
    const { id } = intent
    session.seqs.add(intent.seq)
    session.calls.push(id)
    this.#calls.set(id, { session, committed: false, superseded: false })
    this.#keptBytes += bytesPerCall
    const { depth, digest } = stored
    const base = { id, depth, facts: texts.facts, body: texts.body, digest }
    this.#keep(session, remember(session.recent, asBase(base, keyframeOf(session.recent, stored.base))))
  }

  /**
   * Throws `STORE_CONFLICT`. Segments that the commit names and that the session does not hold are given back: they may
   * belong to the session that it was forked from.
   */
  checkCommit(session: SessionLedger, commit: CallCommit, foreign: ReadonlyMap<Id, number>): readonly Id[] {
    if (this.#calls.get(commit.callId)?.committed === true) {
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
    const call = this.#calls.get(commit.callId)
    if (call !== undefined) call.committed = true
    for (const segment of commit.segments) session.segments.set(segment.id, segment.tokens.length)
  }

  /** Throws `STORE_CONFLICT`. */
  superseded(id: Id): void {
    const call = this.#calls.get(id)
    if (call?.superseded === true) throw new PaddockError('STORE_CONFLICT', `call ${id} has been superseded before`)
    if (call !== undefined) call.superseded = true
  }

  /** Drops a session from mind; nothing is lost. */
  forget(session: SessionLedger): void {
    if (!this.#sessions.delete(session.id)) return
    for (const call of session.calls) this.#calls.delete(call)
    this.#keptBytes -= weight(session)
  }

  /** After a write that failed: what is in mind may be more than what is written. */
  forgetAll(): void {
    this.#sessions.clear()
    this.#calls.clear()
    this.#keptBytes = 0
  }

  #keep(session: SessionLedger, recent: readonly BaseCall[]): void {
    this.#keptBytes += weightOf(recent) - weightOf(session.recent)
    session.recent = recent
    this.#sessions.delete(session.id)
    this.#sessions.set(session.id, session)
    if (this.#keptBytes <= maxKeptBytes) return
    for (const oldest of this.#sessions.values()) {
      if (this.#keptBytes <= maxKeptBytes || oldest === session) break
      this.forget(oldest)
    }
  }
}

/** The first call of the run that a call on this base is in; null: it has no base. */
function keyframeOf(recent: readonly BaseCall[], base: Id | null): BaseCall['keyframe'] | null {
  for (const call of recent) if (call.id === base) return call.keyframe
  return null
}

/** Numbers that mostly come one after the other: those from 0 on without a gap take no memory. */
class SeqSet {
  #all = 0
  readonly #beyond = new Set<number>()

  has(seq: number): boolean {
    return (seq >= 0 && seq < this.#all && Number.isInteger(seq)) || this.#beyond.has(seq)
  }

  add(seq: number): void {
    if (seq !== this.#all) {
      if (!this.has(seq)) this.#beyond.add(seq)
      return
    }
    this.#all += 1
    while (this.#beyond.delete(this.#all)) this.#all += 1
  }
}

function weight(session: SessionLedger): number {
  return bytesPerCall * session.calls.length + weightOf(session.recent)
}

function weightOf(recent: readonly BaseCall[]): number {
  let sum = 0
  for (const base of recent) sum += base.facts.byteLength + base.body.byteLength + base.keyframe.body.byteLength
  return sum
}
