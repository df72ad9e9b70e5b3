import { setImmediate as nextTurnOfLoop, setTimeout as sleep } from 'node:timers/promises'
import { seedOf, mulberry32 } from '../policy/prng.ts'
import { TrieWalk } from '../policy/trie.ts'
import { splitTokens } from '../faults/non-canonical.ts'
import { Choice } from './choice.ts'
import type { Engine, Flight } from '../engine.ts'
import type { CallFaults } from '../faults/fault-switch.ts'
import type { PolicyAnswer } from '../policy/policy.ts'
import type { ChoiceStep } from './choice.ts'
import type { SamplingParams } from './sampling.ts'

/** Everything a generation needs to run and to be put on record. */
export interface GenerationPlan {
  readonly requestId: string
  /** Names under which a client may abort it. */
  readonly names: ReadonlySet<string>
  readonly route: string
  /** The LoRA adapter that it runs under, null: none. */
  readonly adapter: string | null
  readonly stream: boolean
  readonly promptIds: Int32Array
  readonly images: readonly string[]
  readonly params: SamplingParams
  readonly maxTokens: number
  readonly answer: PolicyAnswer
  readonly faults: CallFaults
  readonly cacheSalt: string | null
  readonly headers: Readonly<Record<string, string>>
}

/** Tokens between two breaths of the event loop when nothing else slows a stream down. */
const BURST = 32

/** One request being answered: n choices, drawn in turns, journaled before the last step is handed out. */
export class Generation {
  readonly plan: GenerationPlan
  readonly choices: readonly Choice[]
  readonly created = Math.floor(Date.now() / 1000)
  readonly #engine: Engine
  readonly #abort = new AbortController()
  readonly #finished = Promise.withResolvers<void>()
  readonly #versionBefore: string
  #recorded = false

  constructor(engine: Engine, plan: GenerationPlan) {
    this.#engine = engine
    this.plan = plan
    this.#versionBefore = engine.weightVersion
    const { profile } = engine
    const request = engine.nextRequest()
    const candidates =
      plan.faults.find('non_canonical') === undefined
        ? plan.answer.candidates
        : plan.answer.candidates.map((candidate) => ({
            ...candidate,
            ids: splitTokens(candidate.ids, profile.vocabulary),
          }))
    this.choices = Array.from({ length: plan.params.n }, (_none, index) => {
      const seed =
        plan.params.seed === undefined
          ? seedOf('engine', engine.options.seed, request, index)
          : seedOf('request', plan.params.seed, index)
      return new Choice(index, {
        walk: new TrieWalk(candidates, plan.answer.depth),
        params: plan.params,
        maxTokens: plan.maxTokens,
        terminators: new Set([profile.terminator.afterCall, profile.terminator.afterText]),
        vocabulary: profile.vocabulary,
        random: mulberry32(seed),
      })
    })
    engine.journal.append({
      kind: 'intent',
      requestId: plan.requestId,
      time: new Date().toISOString(),
      wire: engine.options.wire,
      route: plan.route,
      model: profile.model,
      promptTokens: plan.promptIds.length,
    })
  }

  /** Output tokens of all choices so far. */
  get outputTokens(): number {
    return this.choices.reduce((sum, choice) => sum + choice.ids.length, 0)
  }

  /** Ends it: the client is gone, or somebody aborted the request. */
  abort(): void {
    this.#abort.abort()
  }

  /**
   * Draws until every choice has ended. The generation is in the journal before the last step is handed out, and also
   * when the reader stops early.
   */
  async *steps(): AsyncGenerator<ChoiceStep, void, void> {
    const flight: Flight = {
      names: this.plan.names,
      abort: this.#abort,
      done: this.#finished.promise,
      drawn: () => this.outputTokens,
    }
    this.#engine.flights.add(flight)
    const { signal } = this.#abort
    const startedMs = performance.now()
    try {
      await this.#beforeFirst(signal)
      for (let token = 1; this.choices.some((choice) => choice.finish === undefined); token++) {
        await this.#beforeToken(token, startedMs, signal)
        for (const choice of this.choices) {
          if (choice.finish !== undefined) continue
          const step = signal.aborted
            ? choice.abort()
            : choice.step(this.#engine.weightVersion, this.#engine.options.logprobsMode)
          if (this.choices.every((other) => other.finish !== undefined)) this.#record()
          yield step
        }
        this.#afterToken(token)
      }
    } finally {
      for (const choice of this.choices) if (choice.finish === undefined) choice.abort()
      this.#record()
      this.#engine.flights.delete(flight)
      this.#finished.resolve()
    }
  }

  async #beforeFirst(signal: AbortSignal): Promise<void> {
    const stall = this.plan.faults.find('stall')
    const stallMs = stall?.at === 'before_first_byte' ? stall.seconds * 1000 : 0
    await quietly(() => this.#engine.gate.begin(signal))
    await pause(stallMs, this.#unlessCleared(signal))
    await pause(this.#engine.options.firstTokenMs, signal)
  }

  async #beforeToken(token: number, startedMs: number, signal: AbortSignal): Promise<void> {
    const { tokensPerSecond, firstTokenMs } = this.#engine.options
    const stall = this.plan.faults.find('stall')
    if (stall?.at === 'mid_stream' && stall.token === token)
      await pause(stall.seconds * 1000, this.#unlessCleared(signal))
    if (this.#engine.gate.scope === 'all') await quietly(() => this.#engine.gate.proceed(signal))
    if (tokensPerSecond > 0) {
      await pause(startedMs + firstTokenMs + ((token - 1) * 1000) / tokensPerSecond - performance.now(), signal)
    } else if (token % BURST === 0) {
      await nextTurnOfLoop()
    }
  }

  #unlessCleared(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.plan.faults.cleared])
  }

  #afterToken(token: number): void {
    const update = this.plan.faults.find('weight_update')
    if (update?.token === token) this.#engine.updateWeightVersion(update.version)
  }

  #record(): void {
    if (this.#recorded) return
    this.#recorded = true
    const { plan } = this
    const { profile, options } = this.#engine
    const { seed, ...params } = plan.params
    this.#engine.journal.append({
      kind: 'generation',
      requestId: plan.requestId,
      time: new Date().toISOString(),
      wire: options.wire,
      route: plan.route,
      model: profile.model,
      adapter: this.plan.adapter,
      stream: plan.stream,
      tokenizer: profile.vocabulary.name,
      template: profile.template.name,
      weightVersionBefore: this.#versionBefore,
      weightVersionAfter: this.#engine.weightVersion,
      promptTokenIds: [...plan.promptIds],
      images: plan.images,
      choices: this.choices.map((choice) => ({
        index: choice.index,
        tokenIds: choice.ids,
        logprobs: choice.draws.map((drawn) => drawn.logprob),
        finishReason: choice.finish?.reason ?? 'abort',
        stopReason: choice.finish?.stop ?? null,
        weightVersions: choice.versions,
        candidates: choice.candidateNames,
      })),
      logprobsMode: options.logprobsMode,
      sampling: { ...params, maxTokens: plan.maxTokens, seed: seed ?? null, engineSeed: options.seed },
      cacheSalt: plan.cacheSalt,
      script: plan.answer.script ?? null,
      headers: plan.headers,
      faults: plan.faults.all,
    })
  }
}

/** Waits; an abort only ends the wait early. */
async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (milliseconds > 0) await quietly(() => sleep(milliseconds, undefined, { signal }))
}

async function quietly(wait: () => Promise<unknown>): Promise<void> {
  try {
    await wait()
  } catch (error) {
    if (!(error instanceof Error && error.name === 'AbortError')) throw error
  }
}
