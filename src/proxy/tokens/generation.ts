import { PaddockError } from '../../core/index.ts'
import { PromptIds } from '../engines/prompt-ids.ts'
import type { EngineAsk, Generated, GeneratedPart, TokenEngine, VersionSpan } from '../engines/token-engine.ts'
import { SseSplitter } from '../http/sse.ts'
import type { WireFault } from '../../trajectory/index.ts'
import { type SeenWeights, unseen, type Upstream, type UpstreamIds, type UpstreamRequest } from '../upstream.ts'
import { type Reply, stepFailed } from './asking.ts'
import { joinedSpans, spansOfLeg } from './leg-spans.ts'
import { startsWith } from './splice-ids.ts'

/** What a {@link Generation} needs. */
export interface GenerationParts {
  readonly upstream: Upstream
  readonly engine: TokenEngine
  readonly ids: UpstreamIds
  /** What is to be conditioned on. */
  readonly prompt: PromptIds
  /** The request for a prompt whose last `spent` ids are the beginning of the answer. */
  readonly ask: (prompt: PromptIds, spent: number) => EngineAsk
  readonly streamed: boolean
  /** The answer may be ended for a weight update and gone on with; one choice only. */
  readonly resumable: boolean
  readonly alive: () => void
  /** The engine has begun to answer. */
  readonly opened?: () => void
  /** Parts of the answer in order; usage comes last, on its own. */
  readonly generated: (generated: Generated) => void
  /** The answer breaks a rule of the wire that whoever listens does not see. */
  readonly faulted: (fault: WireFault) => void
}

/** How a generation came out. `done`: the stream was told to its mark. */
export type GenerationEnd =
  | {
      readonly kind: 'ended'
      readonly done: boolean
      /** Which weights sampled which tokens, where the answer was made in several legs; else the parts say it. */
      readonly versions: readonly VersionSpan[] | null
    }
  | { readonly kind: 'refused'; readonly reply: Reply }

/**
 * One answer of the token route in one or more legs. A weight update ends a leg; the next one begins with the ids so far and asks
 * for what is left, so that whoever listens hears one answer without a seam.
 */
export class Generation implements UpstreamRequest {
  readonly end: Promise<GenerationEnd>
  private readonly parts: GenerationParts
  private readonly resolve: (end: GenerationEnd) => void
  private readonly reject: (cause: unknown) => void
  private current: UpstreamRequest | null = null
  private aborted = false
  private readonly sampled: number[] = []
  private readonly seen: SeenWeights[] = []
  private readonly spans: VersionSpan[] = []
  /** Some leg's weights are not known, so that spans would claim too much. */
  private spansKnown = true
  private usage: Generated['usage'] = null
  /** The prompt as the engine first told it. */
  private echo: Int32Array | null = null

  constructor(parts: GenerationParts) {
    this.parts = parts
    const { promise, resolve, reject } = Promise.withResolvers<GenerationEnd>()
    this.end = promise
    this.resolve = resolve
    this.reject = reject
    this.leg()
  }

  pause(): void {
    this.current?.pause()
  }

  resume(): void {
    this.current?.resume()
  }

  abort(): void {
    this.aborted = true
    this.current?.abort()
  }

  async weights(told: string | null): Promise<SeenWeights> {
    const [first] = this.seen
    if (first === undefined) return this.current?.weights(told) ?? unseen(told)
    const last = this.seen.at(-1) ?? first
    return { ...last, before: first.before, staleCache: this.seen.some(({ staleCache }) => staleCache) }
  }

  private leg(): void {
    if (this.aborted) return
    const { upstream, ids, ask, prompt, resumable, streamed, alive } = this.parts
    const spent = this.sampled.length
    const leg = new Leg(prompt, this.sampled)
    const { path, body } = ask(leg.prompt, spent)
    const requestId = this.seen.length === 0 ? ids.callId : `${ids.callId}.${this.seen.length + 1}`
    let refusal: Pick<Reply, 'status' | 'headers'> | null = null
    const received: Buffer[] = []
    const splitter = new SseSplitter()
    const ended = (): void => {
      this.endLeg(leg, { refusal, received, streamed }).catch(this.reject)
    }
    this.current = upstream.send(
      path,
      body,
      { ...ids, requestId },
      {
        head: (status, headers) => {
          if (status >= 400) refusal = { status, headers }
          else if (this.seen.length === 0) this.parts.opened?.()
        },
        chunk: (bytes) => {
          alive()
          if (refusal !== null || !streamed) {
            received.push(bytes)
            return
          }
          for (const { payload } of splitter.push(bytes)) {
            if (payload === null) continue
            if (payload.equals(doneMark)) leg.done = true
            else if (!this.take(leg, payload)) return
          }
        },
        end: ended,
        failed: (error) => {
          if (leg.interrupted) ended()
          else this.reject(error)
        },
      },
      resumable ? { interrupted: () => (leg.interrupted = true) } : {},
    )
  }

  /** Hands on what a payload brings; false where it cannot be read. */
  private take(leg: Leg, payload: Buffer): boolean {
    const generated = this.parts.engine.readGenerated(payload)
    if (generated === null) {
      this.current?.abort()
      this.reject(new PaddockError('ENGINE_ERROR', 'The engine sent an event that is not JSON.'))
      return false
    }
    const later = this.seen.length > 0
    const echoed = leg.echoes(generated.promptIds)
    if (later && !echoed) {
      this.current?.abort()
      this.reject(new PaddockError('ENGINE_ERROR', 'The engine went on from other ids than it was given.'))
      return false
    }
    if (generated.usage !== null) this.usage = generated.usage
    this.findFaults(generated)
    this.parts.generated({
      ...generated,
      usage: null,
      // Equal ids are held once.
      promptIds: later ? null : generated.promptIds !== null && echoed ? leg.prompt.ids : generated.promptIds,
      parts: this.parts.resumable ? generated.parts.map((part) => this.noted(leg, part)) : generated.parts,
    })
    return true
  }

  /** Parts of one number are put together from here on, and the prompt is told once. */
  private findFaults({ parts, promptIds }: Generated): void {
    if (parts.length > 1 && new Set(parts.map(({ index }) => index)).size < parts.length) {
      this.parts.faulted('duplicate_choice')
    }
    if (promptIds === null || this.seen.length > 0) return
    this.echo ??= promptIds
    if (this.echo.length !== promptIds.length || !startsWith(this.echo, promptIds)) {
      this.parts.faulted('changed_prompt_ids')
    }
  }

  private noted(leg: Leg, part: GeneratedPart): GeneratedPart {
    this.sampled.push(...part.ids)
    if (part.weightVersions.length > 0) leg.told = part.weightVersions
    const aborted = leg.interrupted && part.finishReason === 'abort'
    if (part.finishReason !== null && !aborted) leg.finished = true
    return {
      ...part,
      finishReason: aborted ? null : part.finishReason,
      weightVersions: leg.spent === 0 ? part.weightVersions : [],
    }
  }

  private async endLeg(
    leg: Leg,
    got: { refusal: Pick<Reply, 'status' | 'headers'> | null; received: readonly Buffer[]; streamed: boolean },
  ): Promise<void> {
    const reply = got.refusal === null ? null : { ...got.refusal, body: Buffer.concat(got.received) }
    if (reply !== null) {
      if (this.seen.length > 0) throw stepFailed('go on with an answer', reply)
      this.resolve({ kind: 'refused', reply })
      return
    }
    if (!got.streamed) {
      const body = Buffer.concat(got.received)
      // An engine that was cut off mid-answer has told nothing: the leg begins anew.
      if (!(leg.interrupted && body.length === 0) && !this.take(leg, body)) return
      leg.done = true
    }
    if (leg.interrupted && !leg.finished) {
      await this.noteWeights(leg)
      this.leg()
      return
    }
    if (this.seen.length > 0) await this.noteWeights(leg)
    if (this.usage !== null) this.tellUsage(this.usage)
    const versions = this.seen.length > 0 && this.spansKnown ? joinedSpans(this.spans) : null
    this.resolve({ kind: 'ended', done: leg.done, versions })
  }

  private async noteWeights(leg: Leg): Promise<void> {
    const seen = await this.current?.weights(leg.told.at(-1)?.version ?? null)
    if (seen === undefined) return
    this.seen.push(seen)
    const spans = spansOfLeg(leg.told, seen, leg.spent, this.sampled.length)
    if (spans === null) this.spansKnown = false
    else this.spans.push(...spans)
  }

  /** Of several legs the counts are those of the one answer. */
  private tellUsage(usage: Readonly<Record<string, unknown>>): void {
    const prompt = this.parts.prompt.ids.length
    const completion = this.sampled.length
    const counts = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion }
    const one = this.seen.length > 0 ? { ...usage, ...counts } : usage
    this.parts.generated({ parts: [], promptIds: null, usage: one, created: null, model: null, error: null })
  }
}

const doneMark = Buffer.from('[DONE]')

/** One request of a generation. */
class Leg {
  readonly prompt: PromptIds
  /** Tokens of the answer before it. */
  readonly spent: number
  interrupted = false
  finished = false
  done = false
  told: readonly VersionSpan[] = []

  constructor(prompt: PromptIds, sampled: readonly number[]) {
    this.spent = sampled.length
    this.prompt = sampled.length === 0 ? prompt : grown(prompt, sampled)
  }

  echoes(echo: Int32Array | null): boolean {
    const { ids } = this.prompt
    return echo === null || (echo.length === ids.length && startsWith(echo, ids))
  }
}

function grown({ ids }: PromptIds, sampled: readonly number[]): PromptIds {
  const all = new Int32Array(ids.length + sampled.length)
  all.set(ids)
  all.set(sampled, ids.length)
  return new PromptIds(all)
}
