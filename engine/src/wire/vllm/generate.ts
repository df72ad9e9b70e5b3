import { validationError } from '../../errors.ts'
import { readSampling } from '../../generation/sampling.ts'
import { readCount, readFlag, readObject, readTokenIds } from '../../json/read.ts'
import { begin } from '../begin.ts'
import { servedAs } from '../lora.ts'
import { routedExpertsNpy } from '../experts.ts'
import { isBefore } from '../version.ts'
import { wireJson, wireLogprob } from '../logprobs.ts'
import { EventStream, sendWhole } from '../stream.ts'
import { checkModel } from './chat-request.ts'
import { constraintFromSchema } from './tool-choice.ts'
import { usageOf } from './usage.ts'
import type { Engine } from '../../engine.ts'
import type { Choice } from '../../generation/choice.ts'
import type { Draw } from '../../generation/sampling.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Begun } from '../begin.ts'

/**
 * `POST /inference/v1/generate`: tokens in, tokens out (vLLM `entrypoints/scale_out/token_in_token_out/protocol.py` at
 * 006ebac2 and `serving.py` at 00a80787). Only `output_mode: "tokens"`. Without `sampling_params.max_tokens` the rest
 * of the context is allowed, as current releases do (older ones stopped after 16).
 */
export async function generate(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  checkModel(body, engine)
  const ids = readTokenIds(body, 'token_ids', engine.profile.vocabulary.size)
  if (ids === undefined || ids.length === 0) throw validationError('Field required', 'token_ids')
  const sampling = readObject(body, 'sampling_params')
  if (sampling === undefined) throw validationError('Field required', 'sampling_params')
  const streamOptions = readObject(body, 'stream_options') ?? new Map()
  const stream = readFlag(body, 'stream') ?? false
  const schema = readObject(sampling, 'structured_outputs')?.get('json') ?? null
  const begun = await begin(exchange, engine, {
    body,
    idPrefix: 'generate-tokens-',
    promptIds: ids,
    params: readSampling(sampling, readCount(sampling, 'logprobs')),
    maxTokens: readCount(sampling, 'max_tokens'),
    maxTokensParam: 'max_tokens',
    capOutput: true,
    truncatePromptTokens: readCount(sampling, 'truncate_prompt_tokens'),
    stream,
    constraint: (view) => constraintFromSchema(schema, view.tools),
  })
  if (begun === undefined) return
  const answer = new TokensAnswer(engine, begun, {
    returnIds: readFlag(body, 'return_token_ids') ?? false,
    includeUsage: readFlag(streamOptions, 'include_usage') ?? false,
  })
  await (stream ? answer.stream(exchange) : answer.whole(exchange))
}

class TokensAnswer {
  readonly #engine: Engine
  readonly #begun: Begun
  readonly #asked: { returnIds: boolean; includeUsage: boolean }
  readonly #old: boolean

  constructor(engine: Engine, begun: Begun, asked: { returnIds: boolean; includeUsage: boolean }) {
    this.#engine = engine
    this.#begun = begun
    this.#asked = asked
    // Releases before 0.32 wrote generate logprobs in the chat shape with `token: "token_id:N"` (v0.27.0 docs).
    this.#old = isBefore(engine.options.vllmVersion, '0.32')
  }

  async whole(exchange: Exchange): Promise<void> {
    const { generation, faults } = this.#begun
    for await (const _step of generation.steps()) if (exchange.response.destroyed) return
    const answer = {
      request_id: generation.plan.requestId,
      model: servedAs(this.#engine, generation),
      created: generation.created,
      usage: this.#usage(),
      prompt_logprobs: null,
      ...this.#promptIds(),
      kv_transfer_params: null,
      ...(this.#old ? {} : { ec_transfer_params: null, output_mode: 'tokens' }),
      choices: generation.choices.map((choice) => ({
        index: choice.index,
        finish_reason: choice.finish?.reason ?? 'abort',
        token_ids: choice.ids,
        routed_experts: this.#experts(choice, true),
        ...this.#versions(choice, true),
        logprobs: this.#logprobs(choice.draws, 1),
      })),
    }
    await sendWhole(exchange, wireJson(answer, faults), faults)
  }

  async stream(exchange: Exchange): Promise<void> {
    const { generation, faults } = this.#begun
    const events = new EventStream(exchange, faults)
    let first = true
    for await (const step of generation.steps()) {
      const choice = generation.choices[step.choice]
      if (choice === undefined) continue
      const token = choice.ids.length
      const drop = faults.find('drop_token_ids')
      const dropped = drop !== undefined && token % drop.every === 0
      const drawn = step.draw === undefined ? [] : [step.draw]
      const chunk = {
        request_id: generation.plan.requestId,
        usage: null,
        ...(first ? this.#promptIds() : {}),
        ...(this.#old ? {} : { output_mode: 'tokens' }),
        choices: [
          {
            index: choice.index,
            finish_reason: step.finish?.reason ?? null,
            token_ids: dropped ? null : drawn.map(({ id }) => id),
            routed_experts: this.#experts(choice, step.finish !== undefined),
            ...this.#versions(choice, step.finish !== undefined),
            logprobs: this.#logprobs(drawn, token),
          },
        ],
      }
      first = false
      await events.send(wireJson(chunk, faults), step.finish === undefined ? 'token' : 'finish', token)
      if (events.over) return
    }
    if (this.#asked.includeUsage) {
      const chunk = { request_id: generation.plan.requestId, choices: [], usage: this.#usage() }
      await events.send(JSON.stringify(chunk), 'usage')
    }
    await events.done()
  }

  #usage(): Record<string, unknown> {
    const { generation, faults, promptIds } = this.#begun
    return usageOf({ prompt: promptIds.length, completion: generation.outputTokens, reasoning: undefined }, faults)
  }

  #promptIds(): Record<string, unknown> {
    return this.#old ? {} : { prompt_token_ids: this.#asked.returnIds ? [...this.#begun.promptIds] : null }
  }

  /** Of the whole choice, with its end. */
  #experts(choice: Choice, last: boolean): string | null {
    return last && this.#engine.options.routedExperts ? routedExpertsNpy(this.#begun.promptIds, choice.ids) : null
  }

  /** Spans come with the end of a choice and cover all of it. */
  #versions(choice: Choice, last: boolean): Record<string, unknown> {
    if (this.#old || !this.#engine.options.weightVersionsInReplies) return {}
    return { weight_versions: last ? choice.versions : null }
  }

  #logprobs(drawn: readonly Draw[], firstToken: number): { content: unknown[] } | null {
    const wanted = this.#begun.generation.plan.params.topLogprobs
    const { faults } = this.#begun
    if (wanted === undefined || faults.find('null_logprobs') !== undefined) return null
    return {
      content: drawn.map((one, at) => {
        const logprob = wireLogprob(one.logprob, firstToken + at, faults)
        const others = one.top.filter((other) => other.id !== one.id)
        const top = [{ id: one.id, logprob: one.logprob }, ...others].slice(0, Math.max(wanted, 1))
        if (this.#old) {
          return {
            token: `token_id:${one.id}`,
            logprob,
            bytes: null,
            top_logprobs: top.map((t) => ({ token: `token_id:${t.id}`, logprob: t.logprob, bytes: null })),
          }
        }
        const rank = one.top.findIndex((other) => other.id === one.id)
        return {
          token_id: one.id,
          logprob,
          rank: rank === -1 ? 1 : rank + 1,
          top_logprobs: top.map((t, place) => ({ token_id: t.id, logprob: t.logprob, rank: place + 1 })),
        }
      }),
    }
  }
}
