import { type CallClass, type Digest, type Id, PaddockError } from '../../core/index.ts'
import type { CallRecord } from '../../trajectory/index.ts'
import type { InjectedEvent } from '../injection/clean.ts'
import { isAnswered } from '../is-answered.ts'
import type { SessionPast } from '../contract.ts'
import { type Difference, differenceOf, withoutVolatile } from './difference.ts'
import { ReplayedSegments, type ReplayedTokens } from './replayed-segments.ts'

/** A request, as far as it is compared with recorded ones. */
export interface ReplayedRequest {
  readonly dialect: string
  readonly path: string
  readonly digest: Digest
  readonly callClass: CallClass
  readonly body: Uint8Array
}

/** A recorded call that was answered. */
export type Recorded = CallRecord & { readonly commit: NonNullable<CallRecord['commit']> }

/** What a request of a child is to the past of its parent. */
export type ReplayStep =
  /** The parent asked just this, and was answered. */
  | { readonly kind: 'recorded'; readonly call: Recorded }
  /** The call at which the child goes its own way; it and all later ones are asked of the engine. */
  | { readonly kind: 'arrived' }
  /** Nothing of the conversation itself: asked of the engine. */
  | { readonly kind: 'aside' }
  | { readonly kind: 'diverged'; readonly why: Divergence }

/** How a request is not the one that the parent made. */
export interface Divergence {
  /** The parent's call that was to come; null: all of them had come. */
  readonly expected: Id | null
  readonly difference: Difference
}

/**
 * The answers that a parent's session got before a call, for a child whose harness was started anew: given again while it asks
 * what its parent's asked. A request is matched by its content, never by its place alone, because calls of titles and sub-agents come
 * in any order; what is never shown to the model may differ. Nothing is guessed: what matches no recorded request is a divergence.
 */
export class Replay {
  readonly onDivergence: SessionPast['onDivergence']
  /** Calls of the parent that have not come yet, oldest first. */
  readonly #left: Recorded[]
  readonly #until: CallRecord
  readonly #segments: ReplayedSegments
  /** Of the parent's calls that were replayed themselves: which one was sampled. */
  readonly #originals = new Map<Id, Id>()
  readonly #injected = new Map<Id, InjectedEvent>()
  #diverged: Divergence | null = null

  /** Throws `FORK_REFUSED` where the log has no such call, or none that a conversation goes on from. */
  constructor(sessionId: Id, { log, until, onDivergence }: SessionPast) {
    this.onDivergence = onDivergence
    this.#segments = new ReplayedSegments(sessionId, log)
    for (const event of log.events) {
      if (event.kind === 'injected') this.#injected.set(event.callId, event)
      if (event.kind === 'replay' && event.callId !== null && event.of !== null)
        this.#originals.set(event.callId, event.of)
    }
    const last = log.calls.find(({ intent }) => intent.id === until)
    if (last === undefined) throw refused(`session ${log.session.id} has no call ${until}`)
    if (last.intent.callClass !== 'main') {
      throw refused(
        `call ${until} is of class ${last.intent.callClass}, and only a conversation's own can be forked at`,
      )
    }
    this.#until = last
    this.#left = log.calls.filter(isGivenAgain).filter(({ intent }) => intent.seq < last.intent.seq)
  }

  /** The call to fork at, as it was asked. */
  get until(): CallRecord['intent'] {
    return this.#until.intent
  }

  /** The call whose answer was sampled, of one that replayed it or that is it. */
  originalOf(callId: Id): Id {
    return this.#originals.get(callId) ?? callId
  }

  /** What is told of what was put into a recorded call's prompt. */
  injectedInto({ intent }: Recorded): InjectedEvent | null {
    return this.#injected.get(intent.id) ?? null
  }

  /** What a recorded call brought, as the child's. Called once for each, in the order in which they are given. */
  tokensOf(recorded: Recorded, callId: Id): ReplayedTokens {
    return this.#segments.of(recorded, callId)
  }

  /** What the next request is. A recorded call is given once. */
  step(asked: ReplayedRequest): ReplayStep {
    if (this.#diverged !== null) return { kind: 'diverged', why: this.#diverged }
    const place = this.#placeOf(asked)
    const [call] = place === -1 ? [] : this.#left.splice(place, 1)
    if (call !== undefined) return { kind: 'recorded', call }
    const missing = this.#left.find(({ intent }) => intent.callClass === 'main')
    if (missing === undefined && isSame(this.#until, asked)) return { kind: 'arrived' }
    if (asked.callClass !== 'main') return { kind: 'aside' }
    const expected = missing ?? this.#until
    this.#diverged = { expected: expected.intent.id, difference: differenceBetween(expected, asked) }
    return { kind: 'diverged', why: this.#diverged }
  }

  /** All that was answered before the call to fork at, oldest first: nothing of it is asked for any more. */
  takeAll(): readonly Recorded[] {
    return this.#left.splice(0)
  }

  #placeOf(asked: ReplayedRequest): number {
    const equal = this.#left.findIndex((call) => isOfRoute(call, asked) && call.intent.requestDigest === asked.digest)
    return equal === -1 ? this.#left.findIndex((call) => isSame(call, asked)) : equal
  }
}

/** True for a call whose answer its harness had: one that failed is made again by whoever got the failure. */
function isGivenAgain(call: CallRecord): call is Recorded {
  return call.commit !== null && !call.superseded && isAnswered(call.commit.outcome)
}

/** Throws `FORK_REFUSED` where nothing can go on from there. */
export function requireReplayable(past: SessionPast): void {
  void new Replay(past.log.session.id, past)
}

/** What a divergence is, in a line. */
export function divergenceLine({ difference: { at, expected, got } }: Divergence): string {
  const where = at === '' ? 'the request' : at
  return `${where} was ${JSON.stringify(expected)} and is ${JSON.stringify(got)}`
}

function isOfRoute({ intent }: CallRecord, { dialect, path }: ReplayedRequest): boolean {
  return intent.dialect === dialect && intent.path === path
}

function isSame(call: CallRecord, asked: ReplayedRequest): boolean {
  if (!isOfRoute(call, asked)) return false
  return call.intent.requestDigest === asked.digest || differenceBetween(call, asked, null) === null
}

function differenceBetween(call: CallRecord, asked: ReplayedRequest): Difference
function differenceBetween(call: CallRecord, asked: ReplayedRequest, same: null): Difference | null
function differenceBetween(call: CallRecord, asked: ReplayedRequest, same?: null): Difference | null {
  const { dialect, path, body } = call.intent
  const other = differenceOf({ dialect, path }, { dialect: asked.dialect, path: asked.path })
  const found = other ?? differenceOf(withoutVolatile(jsonOf(body)), withoutVolatile(jsonOf(asked.body)))
  // The same request a second time: the parent made it once.
  return found ?? (same === null ? null : { at: '', expected: 'asked once', got: 'asked again' })
}

function jsonOf(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes).toString())
}

function refused(why: string): PaddockError {
  return new PaddockError('FORK_REFUSED', `There is no fork there: ${why}.`, {
    fix: '`paddock show <rollout>` lists the calls; fork at one of class main.',
  })
}
