import { PaddockError } from '../../core/index.ts'
import { reason } from '../engines/http.ts'
import type { LineBreak, LineExchange, LineSink } from '../http/engine-line/index.ts'
import { type SeenWeights, unseen, type UpstreamIds, type UpstreamRequest, versionUnder } from '../upstream.ts'
import { type AdapterVersion, type HeldAdapter, whyLacking } from './adapters.ts'
import { AliasedAnswer, aliasedError } from './alias.ts'
import type { FleetAsk } from './ask.ts'
import { bodyFor } from './body.ts'
import { asPaddockError, upstreamFailure } from './failure.ts'
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
  /** What new generations run under; null: the server's own weights. */
  adapter(): AdapterVersion | null
  /** The replica has it, and names it, when this resolves. Throws `WEIGHTS_REFUSED`. */
  equip(replica: Replica, adapter: AdapterVersion): Promise<void>
  /** It does not get the adapter that new generations run under. */
  lacks(replica: Replica, why: string): void
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
  /** What it is asked under. */
  private under: HeldAdapter | null = null
  private isHeld = false
  private aliased: AliasedAnswer | null = null
  /** An error of a replica that is asked under an adapter: it is told when it has come whole. */
  private refusal: Refusal | null = null
  /** The replica had lost the adapter, and was given it again. */
  private equipped = false

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
    if (replica === null) return unseen(told)
    const { weights, known } = replica
    if (told !== null) weights.note(told)
    const after = told !== null || weights.untold ? told : weights.read()
    if (!(after instanceof Promise) && !known.doubtful) return this.seen(replica, after)
    return Promise.all([after, known.learnSoon()]).then(([version]) => this.seen(replica, version))
  }

  private seen(replica: Replica, after: string | null): SeenWeights {
    const { before, staleCache, recomputed, under: adapter } = this
    return {
      before: versionUnder(adapter, before),
      after: versionUnder(adapter, after),
      staleCache: staleCache || replica.staleCache,
      recomputed,
      facts: replica.known.facts,
      adapter,
    }
  }

  private take(replica: Replica): void {
    this.replica = replica
    this.around.began(this, replica)
  }

  private dispatch(replica: Replica, fresh: boolean): void {
    if (this.settled) return
    const { ids, path, generates } = this.ask
    const live = generates ? this.around.adapter() : null
    if (live !== null && replica.adapters.current?.of !== live) {
      void this.equip(replica, live, fresh)
      return
    }
    const body = generates ? this.bodyUnder(live === null ? null : replica.adapters.current, replica) : this.body
    if (body === null) return
    this.before = replica.weights.version
    this.staleCache = replica.staleCache
    replica.requests += 1
    const ask = {
      path,
      headers: { 'x-request-id': ids.requestId ?? ids.callId, 'x-session-id': ids.sessionId },
      body,
    }
    this.exchange = replica.line.ask(ask, new Attempt(this, replica, fresh), fresh)
    if (this.halted) this.exchange.pause()
  }

  // ------------------------------------------------------------------------------- what an attempt hears

  head(replica: Replica, status: number, headers: Refusal['headers']): void {
    if (this.settled) return
    if (this.under !== null && status >= 400 && this.refusal === null) {
      this.refusal = { replica, status, headers, received: [] }
      return
    }
    this.tellHead(replica, status, headers)
  }

  private tellHead(replica: Replica, status: number, headers: Refusal['headers']): void {
    this.answered = true
    this.body = noBody
    if (status >= 500) this.around.failed(replica, `answered ${status}`, false)
    else this.around.succeeded(replica)
    this.ask.sink.head(status, headers)
  }

  data(bytes: Buffer): void {
    if (this.settled) return
    if (this.refusal !== null) {
      this.refusal.received.push(bytes)
      return
    }
    if (this.aliased === null) {
      this.ask.sink.chunk(bytes)
      return
    }
    const piece = this.aliased.piece(bytes)
    const { foreign } = this.aliased
    if (foreign !== null) {
      this.exchange?.abort()
      this.fail(new PaddockError('ENGINE_UNTRUSTED', `${this.askedUnder()}, and ${foreign} answers.`))
      return
    }
    if (piece.length > 0) this.ask.sink.chunk(piece)
  }

  end(): void {
    if (this.settled) return
    if (this.refusal !== null) {
      void this.refused(this.refusal)
      return
    }
    const rest = this.aliased?.end()
    if (rest !== undefined && rest.length > 0) this.ask.sink.chunk(rest)
    if (this.settle()) this.ask.sink.end()
  }

  /** Gives the replica the adapter first; one that does not get it takes no calls. */
  private async equip(replica: Replica, live: AdapterVersion, fresh: boolean): Promise<void> {
    try {
      await this.around.equip(replica, live)
    } catch (cause) {
      if (this.settled) return
      const why = whyLacking(cause)
      this.around.lacks(replica, why)
      this.elsewhere(replica, asPaddockError(cause), why)
      return
    }
    this.remind()
    this.dispatch(replica, fresh)
  }

  /** A replica that was started anew knows no adapters, and says so: it gets them again, and is asked once more. */
  private async refused({ replica, status, headers, received }: Refusal): Promise<void> {
    const { under } = this
    const mayLack = (status === 404 || status === 400) && under !== null && !this.equipped
    if (mayLack && !(await replica.adapters.stillHas(under))) {
      if (this.settled) return
      this.refusal = null
      this.equipped = true
      replica.retries += 1
      this.around.retried(replica, `it had lost the adapter ${under.name}`)
      this.dispatch(replica, false)
      return
    }
    if (this.settled) return
    const body = Buffer.concat(received)
    const told = under === null ? body : aliasedError(body, under.name, under.models[0] ?? '')
    const { 'content-length': _length, ...others } = headers
    this.tellHead(replica, status, others)
    this.ask.sink.chunk(told)
    if (this.settle()) this.ask.sink.end()
  }

  private askedUnder(): string {
    const name = this.under?.name ?? ''
    return `The replica ${this.replica?.url ?? ''} was asked under the adapter ${name}`
  }

  /** Null: it names a model that adapters are not put on, and has been told so. */
  private bodyUnder(under: HeldAdapter | null, replica: Replica): Buffer | null {
    this.hold(under, replica)
    const body = bodyFor(this.ask, this.body, { replica, under, isSalted: this.around.salted(replica) })
    if (body instanceof PaddockError) {
      this.fail(body)
      return null
    }
    if (under?.routes.member === 'model') this.aliased = new AliasedAnswer(under.name, under.models[0] ?? '')
    return body
  }

  /** The adapter is not unloaded while it runs. */
  private hold(under: HeldAdapter | null, replica: Replica): void {
    this.letGo()
    this.under = under
    this.aliased = null
    if (under === null) return
    this.isHeld = true
    replica.adapters.hold(under)
  }

  private letGo(): void {
    if (!this.isHeld || this.under === null) return
    this.isHeld = false
    this.replica?.adapters.release(this.under)
  }

  broke(replica: Replica, broke: LineBreak, fresh: boolean): void {
    if (this.settled) return
    const gone = broke.kind === 'unreachable'
    if (broke.kind !== 'malformed') replica.known.suspect({ gone })
    const why = reason(broke.cause)
    const failure = upstreamFailure(broke)
    const mayRetry = !this.answered && !this.interrupted
    this.refusal = null
    if (mayRetry && broke.kind === 'died' && !fresh) {
      replica.retries += 1
      this.around.retried(replica, why)
      this.dispatch(replica, true)
      return
    }
    this.around.failed(replica, why, gone)
    if (!gone) this.deaths += 1
    if (!mayRetry || this.deaths >= maxDeaths) this.fail(failure)
    else this.elsewhere(replica, failure, why)
  }

  /** Asks another replica, or tells why this one did not answer. */
  private elsewhere(replica: Replica, failure: PaddockError, why: string): void {
    this.tried ??= new Set()
    this.tried.add(replica)
    if (this.around.choose(this.ask.ids, this.tried) === null) {
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
    this.letGo()
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

/** What a replica says in the place of an answer. */
interface Refusal {
  readonly replica: Replica
  readonly status: number
  readonly headers: Parameters<LineSink['head']>[1]
  readonly received: Buffer[]
}

const noBody = Buffer.alloc(0)
const untried: ReadonlySet<Replica> = new Set()
