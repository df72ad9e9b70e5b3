import { type Id, PaddockError } from '../../core/index.ts'
import type { CallCommit, CallIntent, SessionRecord } from '../contract/index.ts'
import { asBase, type BaseCall, type EncodedTexts, keyframeOf, remember, type Texts } from './bodies.ts'
import type { FactsText } from './facts.ts'
import type { RememberedSession } from './memory.ts'

/** Bodies kept as bases of the next difference, over all sessions. */
const maxKeptBytes = 128 * 2 ** 20
/** What the rest of a session's ledger weighs, roughly, per call. */
const bytesPerCall = 1024

/** What decides which further facts of a call fit. */
export interface CallLedger {
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
  /** The newest first. */
  readonly recent: BaseCall[]
  /** Of the last intent. */
  facts: FactsText | null
  /** Called upon since it was last considered to be dropped from mind. */
  inUse: boolean
}

/**
 * The sessions that the recorder has in mind: a fact that contradicts the log is refused before it is written, without
 * asking the database. What is not in mind is not unknown: the writer thread tells it.
 */
export class Ledger {
  /** In the order in which they are considered to be dropped. */
  readonly #sessions = new Map<Id, SessionLedger>()
  readonly #calls = new Map<Id, CallLedger>()
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
      inUse: false,
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
      inUse: false,
    }
    this.#sessions.set(id, session)
    for (const seq of seqs) session.seqs.add(seq)
    for (const [call, committed, superseded] of calls) this.#calls.set(call, { session, committed, superseded })
    this.#keptBytes += weight(session)
    if (last !== null) this.#keep(session, last)
    return session
  }

  /** Undefined: not in mind. */
  session(id: Id): SessionLedger | undefined {
    return this.#sessions.get(id)
  }

  /** Undefined: not in mind. */
  call(id: Id): CallLedger | undefined {
    return this.#calls.get(id)
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
    const shared = { facts: stored.facts.prefix, body: stored.body.prefix }
    const base = { id, depth, facts: texts.facts, body: texts.body, digest, shared }
    this.#keep(session, asBase(base, runOf(session.recent, stored.base)))
  }

  /**
   * Throws `STORE_CONFLICT`. Segments that the commit names and that the session does not hold are given back: they may
   * belong to the session that it was forked from.
   */
  checkCommit(call: CallLedger, commit: CallCommit, foreign: ReadonlyMap<Id, number>): readonly Id[] {
    if (call.committed) {
      throw new PaddockError('STORE_CONFLICT', `call ${commit.callId} has been committed before`)
    }
    const { segments } = call.session
    const own = commit.segments
    let unknown: Id[] | null = null
    // Mostly the first one hangs where the prompt ends, which is asked for once.
    let found: Id | null = null
    for (let place = 0; place < own.length; place += 1) {
      const segment = own[place]
      if (segment === undefined) break
      const { id, parent } = segment
      if (ownLength(own, place, id) !== undefined || segments.has(id)) {
        throw new PaddockError('STORE_CONFLICT', `segment ${id} has been stored before`)
      }
      if (parent === null) continue
      const { segmentId, offset } = parent
      const length = ownLength(own, place, segmentId) ?? segments.get(segmentId) ?? foreign.get(segmentId)
      if (length === undefined) (unknown ??= []).push(segmentId)
      // At 0 only behind what has no tokens: an answer from elsewhere.
      else if (!Number.isInteger(offset) || offset < Math.min(1, length) || offset > length) {
        throw new PaddockError('STORE_CONFLICT', `segment ${id} hangs at ${offset} of ${length} tokens`)
      } else found = segmentId
    }
    for (const { index, segmentId } of commit.choices) {
      if (segmentId !== null && ownLength(own, own.length, segmentId) === undefined) {
        throw new PaddockError('STORE_CONFLICT', `choice ${index} of ${commit.callId} names a foreign segment`)
      }
    }
    const leaf = commit.promptLeaf
    if (leaf === null || leaf === found || ownLength(own, own.length, leaf) !== undefined) return unknown ?? none
    if (!segments.has(leaf) && !foreign.has(leaf)) (unknown ??= []).push(leaf)
    return unknown ?? none
  }

  committed(call: CallLedger, commit: CallCommit): void {
    call.committed = true
    for (const segment of commit.segments) call.session.segments.set(segment.id, segment.tokens.length)
  }

  /** Throws `STORE_CONFLICT`. */
  superseded(call: CallLedger, id: Id): void {
    if (call.superseded) throw new PaddockError('STORE_CONFLICT', `call ${id} has been superseded before`)
    call.superseded = true
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

  #keep(session: SessionLedger, base: BaseCall): void {
    const dropped = remember(session.recent, base)
    this.#keptBytes += weightOf(base) - (dropped === undefined ? 0 : weightOf(dropped))
    session.inUse = true
    if (this.#keptBytes > maxKeptBytes) this.#makeRoom(session)
  }

  /**
   * Drops sessions until the others have room. One that was called upon since it was last considered goes to the end instead:
   * to keep the order at every call would cost each of them a look-up and the memory of a place.
   */
  #makeRoom(busy: SessionLedger): void {
    for (const oldest of this.#sessions.values()) {
      if (this.#keptBytes <= maxKeptBytes || this.#sessions.size === 1) break
      if (!oldest.inUse && oldest !== busy) {
        this.forget(oldest)
        continue
      }
      oldest.inUse = false
      this.#sessions.delete(oldest.id)
      this.#sessions.set(oldest.id, oldest)
    }
  }
}

const none: readonly Id[] = []

/** The first call of the run that a call on this base is in; null: it has no base. */
function runOf(recent: readonly BaseCall[], base: Id | null): BaseCall | null {
  for (const call of recent) if (call.id === base) return keyframeOf(call)
  return null
}

/** The length of a segment among the first `count`; undefined: it is none of them. These are few: no index pays. */
function ownLength(segments: CallCommit['segments'], count: number, id: Id): number | undefined {
  for (let place = 0; place < count; place += 1) {
    const segment = segments[place]
    if (segment?.id === id) return segment.tokens.length
  }
  return undefined
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
  let sum = bytesPerCall * session.calls.length
  for (const base of session.recent) sum += weightOf(base)
  return sum
}

function weightOf(base: BaseCall): number {
  return base.facts.byteLength + base.body.byteLength + keyframeOf(base).body.byteLength
}
