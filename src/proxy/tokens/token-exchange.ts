import { isPaddockError, PaddockError } from '../../core/index.ts'
import { PromptIds } from '../engines/prompt-ids.ts'
import {
  askRender,
  type DerenderRoute,
  type EngineAsk,
  type Generated,
  type GeneratedPart,
  type RenderedPrompt,
  type TokenAbility,
  type TokenEngine,
  type VersionSpan,
} from '../engines/token-engine.ts'
import type { WireFault } from '../../trajectory/index.ts'
import { type SeenWeights, unseen, type Upstream, type UpstreamRequest, type UpstreamSink } from '../upstream.ts'
import { Asking, type Reply } from './asking.ts'
import type { ChatBody } from './chat-body.ts'
import { completionOf, headOf, sampledOnly } from './chat-reply.ts'
import type { AnswerSink, OutgoingCall } from './contract.ts'
import { DerenderSteps, derenderTries, type StreamCount, untold } from './derender-steps.ts'
import { Generation, type GenerationEnd, type GenerationParts } from './generation.ts'
import { togetherWith, withVersions } from './generated.ts'
import type { PromptPlan } from './prompt-plan.ts'
import { isResumable } from './resumable.ts'

/** What a {@link TokenExchange} needs. */
export interface ExchangeParts {
  readonly call: OutgoingCall
  /** Its body, read. */
  readonly chat: ChatBody
  readonly engine: TokenEngine
  readonly ability: TokenAbility
  readonly upstream: Upstream
  /** Turns what the chat route says into the shape that the sink hears. */
  readonly readsChat: (sink: UpstreamSink) => UpstreamSink
  readonly sink: AnswerSink
  readonly streams: StreamCount
  /** Plans the prompt; `render` is another question to the engine on behalf of this call. */
  readonly plan: (rendered: Int32Array, render: (body: Buffer) => Promise<Int32Array | null>) => Promise<PromptPlan>
  readonly notes: {
    planned(plan: PromptPlan): void
    /** The call was asked on the chat route after all. */
    fellBack(why: 'splice_unavailable' | 'splice_refused'): void
    generated(part: GeneratedPart): void
    /** Which weights sampled an answer of one choice that was made in several legs. */
    versions(spans: readonly VersionSpan[]): void
    /** What was sampled could not be told as a message. */
    untold(): void
    faulted(fault: WireFault): void
  }
}

/**
 * One call as render -> generate -> message, by the way that the engine has. The sink hears what it would have heard from
 * the engine's chat route, so nothing behind it knows the difference. Where the token routes are gone, or media turns up
 * in the prompt, the chat route is asked with messages instead; where the engine refuses a spliced prompt, the rendered one
 * is taken.
 */
export class TokenExchange implements UpstreamRequest {
  private readonly parts: ExchangeParts
  private readonly asking: Asking
  /** The long request: generation, or the chat route. */
  private main: UpstreamRequest | null = null
  private aborted = false
  private leaveCount: (() => void) | null = null

  constructor(parts: ExchangeParts) {
    this.parts = parts
    this.asking = new Asking(parts.upstream, parts.call)
    this.run().catch((cause: unknown) => this.fail(cause))
  }

  pause(): void {
    this.main?.pause()
  }

  resume(): void {
    this.main?.resume()
  }

  async weights(told: string | null): Promise<SeenWeights> {
    return this.main?.weights(told) ?? unseen(told)
  }

  abort(): void {
    this.aborted = true
    this.leaveCount?.()
    this.asking.abort()
    this.main?.abort()
  }

  private async run(): Promise<void> {
    const { call, chat, engine, ability, plan, notes, sink, streams } = this.parts
    if (ability.way === 'parse' && engine.takes?.(chat) === false) return this.chatRoute('splice_unavailable')
    const ask = (one: EngineAsk) => this.asking.ask(one)
    const reply = await askRender(engine, ask, call.body)
    if ([404, 405, 501].includes(reply.status)) return this.chatRoute('splice_unavailable')
    if (reply.status >= 400) return this.pass(reply)
    const rendered = engine.readRender(reply.body)
    if (rendered === null || rendered.media) return this.chatRoute('splice_unavailable')
    const planned = await plan(rendered.ids.ids, async (body) => {
      const answer = await askRender(engine, ask, body)
      return answer.status >= 400 ? null : (engine.readRender(answer.body)?.ids.ids ?? null)
    })
    sink.chunk(nothing)
    const streamed = chat.flag('stream') && !chat.hasStops && ability.streams
    const generate = (ids: PromptIds) => {
      if (ability.way === 'chat' && engine.chatFrom !== undefined) return this.chatFrom(engine.chatFrom(chat, ids))
      const prompted = { ids, rendered }
      if (!streamed || engine.steps === undefined) return this.whole(prompted)
      this.leaveCount = streams.join()
      return this.stream(prompted, engine.steps).finally(this.leaveCount)
    }
    notes.planned(planned)
    if (this.fits(planned.ids)) {
      const isRendered = planned.ids === rendered.ids.ids
      const refused = await generate(isRendered ? rendered.ids : new PromptIds(planned.ids))
      if (refused === null) return
      if (planned.way === 'rendered' || refused.status !== 400) return this.pass(refused)
    }
    // The recorded path may be longer than what the template makes of it, and not fit where that one does.
    notes.fellBack('splice_refused')
    notes.planned({ ids: rendered.ids.ids, way: 'rendered', forked: 'truncated' })
    const again = await generate(rendered.ids)
    if (again !== null) this.pass(again)
  }

  /**
   * Generate routes cut what is asked beyond the context without a word, where chat routes refuse it; so does this. What
   * the template rendered has been through the engine's own check.
   */
  private fits(ids: Int32Array): boolean {
    const { maxModelLen } = this.parts.ability
    const asked = this.parts.chat.maxTokens
    return maxModelLen === null || asked === null || ids.length + asked <= maxModelLen
  }

  /** The chat route with ids in the place of messages: it streams, stops and parses as ever. Null when it was told. */
  private chatFrom(ask: EngineAsk): Promise<Reply | null> {
    const { call, upstream, sink, readsChat } = this.parts
    return new Promise((resolve) => {
      if (this.aborted) return
      const told = readsChat(sink)
      let refusal: Pick<Reply, 'status' | 'headers'> | null = null
      const refused: Buffer[] = []
      this.main = upstream.send(ask.path, ask.body, call, {
        head: (status, headers) => {
          if (status >= 400) refusal = { status, headers }
          else told.head(status, headers)
        },
        chunk: (bytes) => {
          if (refusal === null) told.chunk(bytes)
          else refused.push(bytes)
        },
        end: () => {
          if (refusal === null) told.end()
          resolve(refusal === null ? null : { ...refusal, body: Buffer.concat(refused) })
        },
        failed: (error) => {
          told.failed(error)
          resolve(null)
        },
      })
    })
  }

  /** The engine's chat route, as strategy `record` asks it. */
  private chatRoute(why: 'splice_unavailable'): void {
    const { call, upstream, sink, readsChat, notes } = this.parts
    notes.fellBack(why)
    if (!this.aborted) this.main = upstream.send(call.path, call.body, call, readsChat(sink))
  }

  private pass(reply: Reply): void {
    const { sink } = this.parts
    sink.head(reply.status, reply.headers)
    sink.chunk(reply.body)
    sink.end()
  }

  private fail(cause: unknown): void {
    if (this.aborted) return
    this.asking.abort()
    this.main?.abort()
    const error = isPaddockError(cause)
      ? cause
      : new PaddockError('ENGINE_ERROR', 'The token routes of the engine gave something unreadable.', { cause })
    this.parts.sink.failed(error)
  }

  /** The long request of the token route. */
  private generation(
    { ids, rendered }: Prompted,
    told: Pick<GenerationParts, 'streamed' | 'generated'> & { readonly opened?: () => void },
  ): Generation {
    const { call, chat, engine, upstream, sink, notes } = this.parts
    const generation = new Generation({
      upstream,
      engine,
      ids: call,
      prompt: ids,
      ask: (prompt, spent) => engine.generate(rendered, prompt, { streamed: told.streamed, chat, spent }),
      resumable: isResumable(chat),
      alive: () => sink.chunk(nothing),
      faulted: (fault) => notes.faulted(fault),
      ...told,
    })
    this.main = generation
    return generation
  }

  /** Null when the answer was told to its end, else the refusal. */
  private async whole(prompted: Prompted): Promise<Reply | null> {
    const { call, chat, engine, sink, notes } = this.parts
    let generated: Generated | null = null
    const end = await this.generation(prompted, {
      streamed: false,
      generated: (more) => {
        generated = generated === null ? more : togetherWith(generated, more)
      },
    }).end
    if (end.kind === 'refused') return end.reply
    const all = generated === null ? null : withVersions(generated, end.versions)
    if (all === null || all.parts.length === 0) throw new PaddockError('ENGINE_ERROR', 'The engine generated nothing.')
    for (const part of all.parts) notes.generated(part)
    const head = headOf(call.callId, all)
    const facts = { chat, promptIds: prompted.ids, callId: call.callId }
    // What the engine says it was given is the truth, where it says it.
    sink.prompted(all.promptIds ?? prompted.ids.ids)
    const derendered = await this.message(() => engine.derenderWhole(facts, all, (one) => this.asking.ask(one)))
    if (this.aborted) return null
    if (derendered === null) {
      notes.untold()
      sink.failed(untold(null), sampledOnly(all, head))
      return null
    }
    sink.head(200, { 'content-type': 'application/json' })
    sink.chunk(completionOf(derendered, all, { head, stops: chat.stops, showsStops: chat.showsStops }))
    sink.end()
    return null
  }

  /** A pure question, asked again where the server failed; null where it stays without an answer. */
  private async message<T>(ask: () => Promise<T | null>): Promise<T | null> {
    for (let left = derenderTries; left > 0; left -= 1) {
      const answer = await ask().catch(() => null)
      if (answer !== null) return answer
    }
    return null
  }

  private async stream(prompted: Prompted, route: DerenderRoute): Promise<Reply | null> {
    const { call, chat, sink, streams, notes } = this.parts
    const broken = Promise.withResolvers<never>()
    let lost = false
    // Whoever waits for the generation hears of it there.
    broken.promise.catch(() => {})
    const told = new DerenderSteps({
      route,
      asking: this.asking,
      facts: { chat, promptIds: prompted.ids, callId: call.callId },
      sink,
      streams,
      failed: (cause) => {
        notes.untold()
        lost = true
        broken.reject(cause)
      },
    })
    const generation = this.generation(prompted, {
      streamed: true,
      opened: () => sink.head(200, { 'content-type': 'text/event-stream' }),
      generated: (generated) => {
        for (const part of generated.parts) notes.generated(part)
        told.take(generated)
      },
    })
    let end: GenerationEnd
    try {
      end = await Promise.race([generation.end, broken.promise])
    } catch (cause) {
      if (!isPaddockError(cause) || lost) throw cause
      await told.finish(cause)
      return null
    }
    if (end.kind === 'refused') return end.reply
    if (end.versions !== null) notes.versions(end.versions)
    told.done = end.done
    await Promise.race([told.finish(null), broken.promise])
    return null
  }
}

/** A prompt that was planned. */
interface Prompted {
  readonly ids: PromptIds
  readonly rendered: RenderedPrompt
}

const nothing = Buffer.alloc(0)
