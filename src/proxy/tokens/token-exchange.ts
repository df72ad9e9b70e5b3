import { isPaddockError, PaddockError } from '../../core/index.ts'
import type { DerenderFacts, Generated, GeneratedPart, TokenAbility, TokenEngine } from '../engines/token-engine.ts'
import { SseSplitter } from '../http/sse.ts'
import type { Upstream, UpstreamRequest, UpstreamSink } from '../upstream.ts'
import { Asking, type Reply, stepFailed } from './asking.ts'
import { ChatBody } from './chat-body.ts'
import { chunkOf, completionOf, event, type ReplyHead, usageChunk } from './chat-reply.ts'
import type { OutgoingCall } from './contract.ts'
import type { PromptPlan } from './prompt-plan.ts'

/** Tries of a derender: it asks for nothing new, so it may be asked again. */
const derenderTries = 3

/** What a {@link TokenExchange} needs. */
export interface ExchangeParts {
  readonly call: OutgoingCall
  readonly engine: TokenEngine
  readonly ability: TokenAbility
  readonly upstream: Upstream
  readonly sink: UpstreamSink
  /** Plans the prompt; `render` is another question to the engine on behalf of this call. */
  readonly plan: (
    chat: ChatBody,
    rendered: Int32Array,
    render: (body: Buffer) => Promise<Int32Array | null>,
  ) => Promise<PromptPlan>
  readonly notes: {
    planned(plan: PromptPlan): void
    /** The call was asked on the chat route after all. */
    fellBack(why: 'splice_unavailable' | 'splice_refused'): void
    generated(part: GeneratedPart): void
  }
}

/**
 * One call as render -> generate -> derender. The sink hears what it would have heard from the engine's chat route, so
 * nothing behind it knows the difference. Where the token routes are gone, or media turns up in the prompt, the chat
 * route is asked instead; where the engine refuses a spliced prompt, the rendered one is taken.
 */
export class TokenExchange implements UpstreamRequest {
  private readonly parts: ExchangeParts
  private readonly asking: Asking
  /** The long request: generation, or the chat route. */
  private main: UpstreamRequest | null = null
  private aborted = false

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

  abort(): void {
    this.aborted = true
    this.asking.abort()
    this.main?.abort()
  }

  private async run(): Promise<void> {
    const { call, engine, plan, notes, sink } = this.parts
    const chat = new ChatBody(call.body)
    const streamed = chat.flag('stream') && !chat.hasStops && this.parts.ability.derendersStreams
    const reply = await this.asking.ask(engine.render(call.body))
    if ([404, 405, 501].includes(reply.status)) return this.chatRoute('splice_unavailable')
    if (reply.status >= 400) return this.pass(reply)
    const rendered = engine.readRender(reply.body)
    if (rendered === null || rendered.media) return this.chatRoute('splice_unavailable')
    const planned = await plan(chat, rendered.ids, async (body) => {
      const answer = await this.asking.ask(engine.render(body))
      return answer.status >= 400 ? null : (engine.readRender(answer.body)?.ids ?? null)
    })
    sink.chunk(Buffer.alloc(0))
    const ask = (ids: Int32Array) => engine.generate(rendered, ids, { streamed, chat: call.body })
    const generate = (ids: Int32Array) =>
      streamed ? this.stream(ask(ids), { chat, ids }) : this.whole(ask(ids), { chat, ids })
    notes.planned(planned)
    const refused = await generate(planned.ids)
    if (refused === null) return
    if (planned.way === 'rendered' || refused.status !== 400) return this.pass(refused)
    // The recorded path may be longer than what the template makes of it, and not fit where that one does.
    notes.fellBack('splice_refused')
    notes.planned({ ids: rendered.ids, way: 'rendered', forked: 'truncated' })
    const again = await generate(rendered.ids)
    if (again !== null) this.pass(again)
  }

  /** The engine's chat route, as strategy `record` asks it. */
  private chatRoute(why: 'splice_unavailable'): void {
    const { call, upstream, sink, notes } = this.parts
    notes.fellBack(why)
    if (!this.aborted) this.main = upstream.send(call.path, call.body, call, sink)
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

  /** Null when the answer was told to its end, else the refusal. */
  private async whole(
    ask: { readonly path: string; readonly body: Buffer },
    { chat, ids }: { readonly chat: ChatBody; readonly ids: Int32Array },
  ): Promise<Reply | null> {
    const { call, engine, sink, notes } = this.parts
    const reply = await this.asking.ask(ask)
    if (reply.status >= 400) return reply
    const generated = engine.readGenerated(reply.body)
    if (generated === null || generated.parts.length === 0) throw stepFailed('generate', reply)
    for (const part of generated.parts) notes.generated(part)
    const head = headOf(call.callId, ids, generated)
    const facts = { chat: chat.bytes, promptIds: ids, callId: call.callId }
    const told = await this.asking.askAgain(engine.derenderWhole(facts, generated.parts), derenderTries)
    const derendered = told.status >= 400 ? null : engine.readDerendered(told.body)
    if (derendered === null) throw stepFailed('turn the ids into a message', told)
    sink.head(200, { 'content-type': 'application/json' })
    sink.chunk(completionOf(derendered, generated, { head, stops: chat.stops }))
    sink.end()
    return null
  }

  private stream(
    ask: { readonly path: string; readonly body: Buffer },
    { chat, ids }: { readonly chat: ChatBody; readonly ids: Int32Array },
  ): Promise<Reply | null> {
    const { call, engine, upstream, sink, notes } = this.parts
    return new Promise((resolve, reject) => {
      if (this.aborted) return
      let refusal: Pick<Reply, 'status' | 'headers'> | null = null
      const refused: Buffer[] = []
      const splitter = new SseSplitter()
      const told = new StepByStep({
        engine,
        asking: this.asking,
        facts: { chat: chat.bytes, promptIds: ids, callId: call.callId },
        sink,
        failed: reject,
      })
      this.main = upstream.send(ask.path, ask.body, call, {
        head: (status, headers) => {
          if (status >= 400) refusal = { status, headers }
          else sink.head(200, { 'content-type': 'text/event-stream' })
        },
        chunk: (bytes) => {
          if (refusal !== null) {
            refused.push(bytes)
            return
          }
          sink.chunk(Buffer.alloc(0))
          for (const { payload } of splitter.push(bytes)) {
            if (payload === null) continue
            if (payload.equals(doneMark)) {
              told.done = true
              continue
            }
            const generated = engine.readGenerated(payload)
            if (generated === null) {
              reject(new PaddockError('ENGINE_ERROR', 'The engine sent an event that is not JSON.'))
              return
            }
            for (const part of generated.parts) notes.generated(part)
            told.take(generated)
          }
        },
        end: () => {
          if (refusal !== null) {
            resolve({ ...refusal, body: Buffer.concat(refused) })
            return
          }
          told.finish(null).then(() => resolve(null), reject)
        },
        failed: (error) => {
          told.finish(error).then(() => resolve(null), reject)
        },
      })
    })
  }
}

const doneMark = Buffer.from('[DONE]')

/**
 * Turns generated parts into deltas while they come: one question at a time, each with everything that came meanwhile,
 * so that a slow derenderer makes larger steps and never a queue.
 */
class StepByStep {
  done = false
  private readonly parts: {
    readonly engine: TokenEngine
    readonly asking: Asking
    readonly facts: DerenderFacts
    readonly sink: UpstreamSink
    readonly failed: (cause: unknown) => void
  }
  private readonly waiting = new Map<number, GeneratedPart>()
  private readonly states = new Map<number, unknown>()
  private head: ReplyHead | null = null
  private usage: Generated['usage'] = null
  private running: Promise<void> | null = null
  private told = false

  constructor(parts: StepByStep['parts']) {
    this.parts = parts
  }

  take(generated: Generated): void {
    const { facts, sink } = this.parts
    this.head ??= headOf(facts.callId, facts.promptIds, generated)
    if (generated.usage !== null) this.usage = generated.usage
    if (generated.error !== null) sink.chunk(event({ error: generated.error }))
    for (const part of generated.parts) {
      const before = this.waiting.get(part.index)
      this.waiting.set(part.index, before === undefined ? part : together(before, part))
    }
    if (this.running !== null || this.waiting.size === 0) return
    this.running = this.run().finally(() => {
      this.running = null
    })
    this.running.catch((cause: unknown) => this.parts.failed(cause))
  }

  /** Tells what is left, then the end, or the failure that took its place. */
  async finish(error: PaddockError | null): Promise<void> {
    while (this.running !== null) await this.running
    const { sink } = this.parts
    if (error !== null) {
      sink.failed(error)
      return
    }
    if (this.head !== null && this.usage !== null) sink.chunk(usageChunk(this.head, this.usage))
    if (this.done) sink.chunk(Buffer.from('data: [DONE]\n\n'))
    sink.end()
  }

  private async run(): Promise<void> {
    for (;;) {
      const [entry] = this.waiting
      if (entry === undefined || this.head === null) return
      const [index, part] = entry
      this.waiting.delete(index)
      const { engine, asking, facts, sink } = this.parts
      const ask = engine.derenderStep(facts, part, this.states.get(index) ?? null)
      const reply = await asking.askAgain(ask, derenderTries).catch(() => null)
      const step = reply === null || reply.status >= 400 ? null : engine.readStep(reply.body)
      const first = !this.told
      this.told = true
      if (step === null) {
        // The ids are sampled and belong to the record, whatever becomes of their text.
        sink.chunk(chunkOf({ choices: [{ delta: {}, finish_reason: null }] }, part, { head: this.head, first }))
        throw stepFailed('turn the ids into a message', reply)
      }
      this.states.set(index, step.state)
      sink.chunk(chunkOf(step.chunk, part, { head: this.head, first }))
    }
  }
}

function together(before: GeneratedPart, next: GeneratedPart): GeneratedPart {
  return {
    index: next.index,
    ids: [...before.ids, ...next.ids],
    logprobs: [...before.logprobs, ...next.logprobs],
    entries: [...before.entries, ...next.entries],
    finishReason: next.finishReason ?? before.finishReason,
    weightVersions: next.weightVersions.length > 0 ? next.weightVersions : before.weightVersions,
  }
}

/** What the engine says it was given is the truth, where it says it. */
function headOf(callId: string, sent: Int32Array, generated: Generated): ReplyHead {
  return {
    callId,
    promptIds: generated.promptIds ?? sent,
    model: generated.model,
    created: generated.created,
  }
}
