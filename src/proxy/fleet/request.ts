import { editObject, PaddockError, scanMembers, sha256 } from '../../core/index.ts'
import { reason } from '../engines/http.ts'
import type { LineBreak, LineExchange, LineSink } from '../http/engine-line/index.ts'
import type { SeenWeights, UpstreamIds, UpstreamRequest } from '../upstream.ts'
import type { FleetAsk } from './ask.ts'
import type { Generation, Replica } from './replica.ts'

/** What a request needs of the fleet around it. */
export interface RequestSurroundings {
  /** The replica that takes the request next; null where every one was tried. Throws nothing. */
  choose(ids: UpstreamIds, without: ReadonlySet<Replica>): Replica | null
  /** Resolves to false at once where generation goes on; else calls `enter` when it does. */
  waitForResume(request: FleetRequest): boolean
  /** Took its place or gave it back. */
  began(request: FleetRequest, replica: Replica): void
  ended(request: FleetRequest, replica: Replica | null): void
  succeeded(replica: Replica): void
  failed(replica: Replica, why: string, gone: boolean): void
  retried(replica: Replica, why: string): void
  /** Prefixes of other weights may be cached: requests carry their version as salt. */
  salted(replica: Replica): boolean
}

/** Deaths over connections of their own, after which the request is not tried on further replicas. */
const maxDeaths = 2

/**
 * One request to the engine. As long as not one byte of an answer came it may be sent again: over a fresh connection where a kept
 * one was dead, to another replica where this one is gone or died twice. After the first byte never.
 */
export class FleetRequest implements UpstreamRequest, Generation {
  readonly ask: FleetAsk
  /** When it was made to wait or frozen; monotonic, set and read by the pause. */
  heldSince: number | null = null
  /** Its KV cache was dropped at a weight update and computed anew. */
  recomputed = false
  interrupted = false
  replica: Replica | null = null
  /** Kept until an answer begins: from then on it is never sent again, and an open stream outlives it by far. */
  private body: Buffer
  private readonly around: RequestSurroundings
  private tried: Set<Replica> | null = null
  private exchange: LineExchange | null = null
  private deaths = 0
  private answered = false
  private settled = false
  private halted = false
  private before: string | null = null
  private staleCache = false

  constructor(ask: FleetAsk, body: Buffer, around: RequestSurroundings) {
    this.ask = ask
    this.body = body
    this.around = around
  }

  /** Sends it, or waits for the end of a pause. Called again when the pause ends. */
  enter(): void {
    if (this.settled || (this.ask.generates && this.around.waitForResume(this))) return
    const replica = this.around.choose(this.ask.ids, this.tried ?? untried)
    if (replica === null) {
      this.fail(new PaddockError('ENGINE_UNREACHABLE', 'No replica of the engine takes calls.'))
      return
    }
    this.take(replica)
    const { weights } = replica
    if (!this.ask.generates || weights.version !== null || weights.untold) {
      this.dispatch(replica, false)
      return
    }
    // What sampled cannot be said afterwards where nobody knew it before.
    void weights.read().then(() => {
      // The time of this question is no silence of the engine.
      this.remind()
      this.dispatch(replica, false)
    })
  }

  pause(): void {
    this.halted = true
    this.exchange?.pause()
  }

  resume(): void {
    this.halted = false
    this.exchange?.resume()
  }

  abort(): void {
    if (this.settle()) this.exchange?.abort()
  }

  /** A weight update ends it; the sink's owner knows that the next end is not the engine's own. */
  interrupt(): void {
    this.interrupted = true
    this.ask.terms.interrupted?.()
  }

  /** For an engine that did not end an interrupted request by itself. */
  cut(): void {
    if (!this.settle()) return
    this.exchange?.abort()
    this.ask.sink.failed(new PaddockError('ENGINE_DIED', 'The request was ended for a weight update.'))
  }

  /** The harness's call is not forgotten. */
  remind(): void {
    if (!this.settled) this.ask.sink.chunk(Buffer.alloc(0))
  }

  weights(told: string | null): SeenWeights | Promise<SeenWeights> {
    const { replica } = this
    if (replica === null) return { before: null, after: told, staleCache: false, recomputed: false, facts: null }
    const { weights, known } = replica
    if (told !== null) weights.note(told)
    const after = told !== null || weights.untold ? told : weights.read()
    if (!(after instanceof Promise) && !known.doubtful) return this.seen(replica, after)
    return Promise.all([after, known.learnSoon()]).then(([version]) => this.seen(replica, version))
  }

  private seen(replica: Replica, after: string | null): SeenWeights {
    const { before, staleCache, recomputed } = this
    return { before, after, staleCache: staleCache || replica.staleCache, recomputed, facts: replica.known.facts }
  }

  private take(replica: Replica): void {
    this.replica = replica
    this.around.began(this, replica)
  }

  private dispatch(replica: Replica, fresh: boolean): void {
    if (this.settled) return
    const { ids, path, generates } = this.ask
    this.before = replica.weights.version
    this.staleCache = replica.staleCache
    replica.requests += 1
    const ask = {
      path,
      headers: { 'x-request-id': ids.requestId ?? ids.callId, 'x-session-id': ids.sessionId },
      body: generates ? this.bodyFor(replica) : this.body,
    }
    this.exchange = replica.line.ask(ask, new Attempt(this, replica, fresh), fresh)
    if (this.halted) this.exchange.pause()
  }

  // ------------------------------------------------------------------------------- what an attempt hears

  head(replica: Replica, status: number, headers: Parameters<LineSink['head']>[1]): void {
    if (this.settled) return
    this.answered = true
    this.body = noBody
    if (status >= 500) this.around.failed(replica, `answered ${status}`, false)
    else this.around.succeeded(replica)
    this.ask.sink.head(status, headers)
  }

  data(bytes: Buffer): void {
    if (!this.settled) this.ask.sink.chunk(bytes)
  }

  end(): void {
    if (this.settle()) this.ask.sink.end()
  }

  /** With the salt of its weights, and the name by which it can be ended, where the engine reads that in the body. */
  private bodyFor(replica: Replica): Buffer {
    const { body } = this
    const { ids, terms } = this.ask
    const member = replica.engine.control?.requestIdMember ?? null
    const named =
      member === null || terms.interrupted === undefined
        ? body
        : editObject(body, { set: { [member]: JSON.stringify(ids.requestId ?? ids.callId) } })
    return this.around.salted(replica) ? salted(named, replica) : named
  }

  broke(replica: Replica, broke: LineBreak, fresh: boolean): void {
    if (this.settled) return
    const gone = broke.kind === 'unreachable'
    if (broke.kind !== 'malformed') replica.known.suspect({ gone })
    const why = reason(broke.cause)
    const failure = upstreamFailure(broke)
    const mayRetry = !this.answered && !this.interrupted
    if (mayRetry && broke.kind === 'died' && !fresh) {
      replica.retries += 1
      this.around.retried(replica, why)
      this.dispatch(replica, true)
      return
    }
    this.around.failed(replica, why, gone)
    if (!gone) this.deaths += 1
    this.tried ??= new Set()
    this.tried.add(replica)
    if (!mayRetry || this.deaths >= maxDeaths || this.around.choose(this.ask.ids, this.tried) === null) {
      this.fail(failure)
      return
    }
    this.leave()
    replica.retries += 1
    this.around.retried(replica, why)
    this.enter()
  }

  private fail(error: PaddockError): void {
    if (this.settle()) this.ask.sink.failed(error)
  }

  /** True once: then the sink is told. What follows from that may look at who is running, and this one is gone by then. */
  private settle(): boolean {
    if (this.settled) return false
    this.settled = true
    this.leave()
    return true
  }

  private leave(): void {
    this.around.ended(this, this.replica)
  }
}

/** One try of a request at a replica. */
class Attempt implements LineSink {
  private readonly request: FleetRequest
  private readonly replica: Replica
  /** Over a connection of its own. */
  private readonly fresh: boolean

  constructor(request: FleetRequest, replica: Replica, fresh: boolean) {
    this.request = request
    this.replica = replica
    this.fresh = fresh
  }

  head(status: number, headers: Parameters<LineSink['head']>[1]): void {
    this.request.head(this.replica, status, headers)
  }

  data(bytes: Buffer): void {
    this.request.data(bytes)
  }

  end(): void {
    this.request.end()
  }

  broke(broke: LineBreak): void {
    this.request.broke(this.replica, broke, this.fresh)
  }
}

const noBody = Buffer.alloc(0)
const untried: ReadonlySet<Replica> = new Set()

/** The request in a prefix cache of its weights, and of the harness's own salt where it has one. */
function salted(body: Buffer, { engine, weights }: Replica): Buffer {
  const member = engine.control?.saltMember ?? null
  if (member === null || weights.version === null) return body
  const own = scanMembers(body).members.findLast(({ key }) => key === member)
  const given: unknown = own === undefined ? null : JSON.parse(body.subarray(own.valueStart, own.valueEnd).toString())
  const salt = saltOf(typeof given === 'string' ? given : null, weights.version)
  return editObject(body, { set: { [member]: JSON.stringify(salt) } })
}

/** Engines take short and plain salts only (vLLM 0.32.0: 128 characters, none of `@`, `/`, `\`); names of weights are anything. */
function saltOf(given: string | null, version: string): string {
  if (given === null && /^[\w.-]{1,100}$/.test(version)) return `weights-${version}`
  return `weights-${sha256(JSON.stringify([given, version]))}`
}

function upstreamFailure({ kind, cause }: LineBreak): PaddockError {
  const why = reason(cause)
  switch (kind) {
    case 'unreachable':
      return new PaddockError('ENGINE_UNREACHABLE', `The engine cannot be reached: ${why}.`, { cause })
    case 'malformed':
      return new PaddockError('ENGINE_ERROR', `The engine's answer is not valid HTTP: ${why}.`, { cause })
    case 'died':
      return new PaddockError(
        'ENGINE_DIED',
        `The engine closed the connection before the answer was complete: ${why}.`,
        { cause },
      )
  }
}
