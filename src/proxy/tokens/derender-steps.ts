import { PaddockError } from '../../core/index.ts'
import type { DerenderFacts, DerenderRoute, Generated, GeneratedPart } from '../engines/token-engine.ts'
import type { Asking, Reply } from './asking.ts'
import { chunksOf, event, headOf, type ReplyHead, usageChunk } from './chat-reply.ts'
import type { AnswerSink } from './contract.ts'
import { together } from './generated.ts'

/** Tries of a derender: it asks for nothing new, so it may be asked again. */
export const derenderTries = 3

/** Prompt ids per token of a step: each step costs all of them again, so long prompts take longer steps. */
const promptPerStepToken = 2048
const maxStepTokens = 64
/**
 * Streams per token of a step, and the most tokens for their sake. A step costs the engine's one API process as much for a
 * token as for many (vLLM 0.32.0: 1 to 2 ms of processor time), and it carries all streams besides.
 */
const streamsPerStepToken = 4
const maxSharedTokens = 16

/** How many answers of one engine are told in steps now. */
export class StreamCount {
  private streams = 0

  /** Tokens that a step should wait for because of the others. */
  get tokens(): number {
    return Math.min(maxSharedTokens, Math.floor(this.streams / streamsPerStepToken))
  }

  /** Another one; the function given back says that it is over, once or more often. */
  join(): () => void {
    let left = false
    this.streams += 1
    return () => {
      if (!left) this.streams -= 1
      left = true
    }
  }
}

/**
 * Turns generated parts into deltas while they come: one question at a time, each with everything that came meanwhile,
 * so that a slow derenderer makes larger steps and never a queue. The first token and the last are never waited for.
 */
export class DerenderSteps {
  done = false
  private readonly parts: {
    readonly route: DerenderRoute
    readonly asking: Asking
    readonly facts: DerenderFacts
    readonly sink: AnswerSink
    readonly streams: StreamCount
    readonly failed: (cause: unknown) => void
  }
  private readonly waiting = new Map<number, GeneratedPart>()
  private readonly states = new Map<number, unknown>()
  private readonly stepTokens: number
  private head: ReplyHead | null = null
  private usage: Generated['usage'] = null
  private running: Promise<void> | null = null
  private ending = false

  constructor(parts: DerenderSteps['parts']) {
    this.parts = parts
    this.stepTokens = Math.min(maxStepTokens, Math.floor(parts.facts.promptIds.ids.length / promptPerStepToken))
  }

  take(generated: Generated): void {
    const { facts, sink } = this.parts
    if (this.head === null) {
      this.head = headOf(facts.callId, generated)
      // What the engine says it was given is the truth, where it says it.
      sink.prompted(generated.promptIds ?? facts.promptIds.ids)
    }
    if (generated.usage !== null) this.usage = generated.usage
    if (generated.error !== null) sink.chunk(event({ error: generated.error }))
    for (const part of generated.parts) {
      const before = this.waiting.get(part.index)
      this.waiting.set(part.index, before === undefined ? part : together(before, part))
    }
    this.go()
  }

  /** Tells what is left, then the end, or the failure that took its place. */
  async finish(error: PaddockError | null): Promise<void> {
    this.ending = true
    this.go()
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

  private go(): void {
    if (this.running !== null || this.due() === null) return
    this.running = this.run().finally(() => {
      this.running = null
    })
    this.running.catch((cause: unknown) => this.parts.failed(cause))
  }

  /** The part that is to be told next, null while it pays to wait for more. */
  private due(): GeneratedPart | null {
    const least = Math.max(this.stepTokens, this.parts.streams.tokens)
    for (const part of this.waiting.values()) {
      const begins = !this.states.has(part.index)
      if (this.ending || begins || part.finishReason !== null || part.ids.length >= least) return part
    }
    return null
  }

  private async run(): Promise<void> {
    for (let part = this.due(); part !== null && this.head !== null; part = this.due()) {
      const { index } = part
      this.waiting.delete(index)
      const { route, asking, facts, sink } = this.parts
      const ask = route.ask(facts, part, this.states.get(index) ?? null)
      const reply = await asking.askAgain(ask, derenderTries).catch(() => null)
      const step = reply === null || reply.status >= 400 ? null : route.read(reply.body)
      if (step === null) {
        this.tellIds(part)
        throw untold(reply)
      }
      this.states.set(index, step.state)
      for (const chunk of chunksOf(step.chunk, part, this.head)) sink.chunk(chunk)
    }
  }

  /** The ids are sampled and belong to the record, whatever becomes of their text; those that wait still too. */
  private tellIds(part: GeneratedPart): void {
    const { head, waiting } = this
    if (head === null) return
    const lost = [part, ...waiting.values()]
    waiting.clear()
    const chunk = { choices: [{ delta: {}, finish_reason: null }] }
    for (const one of lost) for (const told of chunksOf(chunk, one, head)) this.parts.sink.chunk(told)
  }
}

/** The failure of an answer that was sampled and can be told to nobody. */
export function untold(reply: Reply | null): PaddockError {
  const said = reply === null ? '' : ` (${reply.status}: ${reply.body.subarray(0, 200).toString()})`
  return new PaddockError('ENGINE_DERENDER_FAILED', `The engine could not turn the sampled ids into a message${said}.`)
}
