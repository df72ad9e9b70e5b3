import { answerParser } from '../../parsers/index.ts'
import { begin } from '../begin.ts'
import { servedAs } from '../lora.ts'
import { routedExpertsNpy } from '../experts.ts'
import { chatLogprob, wireJson } from '../logprobs.ts'
import { EventStream, sendWhole } from '../stream.ts'
import { chatDelta, chatFinish, chatMessage } from './chat-message.ts'
import { readChatRequest } from './chat-request.ts'
import { reasoningTokens, usageOf } from './usage.ts'
import type { Engine } from '../../engine.ts'
import type { Choice, ChoiceStep } from '../../generation/choice.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { AnswerParser } from '../../parsers/index.ts'
import type { Begun } from '../begin.ts'
import type { LogprobStyle } from '../logprobs.ts'
import type { MessageSetting } from './chat-message.ts'
import type { ChatRequest } from './chat-request.ts'

/**
 * `POST /v1/chat/completions` as vLLM answers it (`entrypoints/openai/chat_completion/serving.py` and `protocol.py` at
 * vllm-project/vllm 006c49d4 and 002032ee). Fields, their order and when they are null follow those files.
 */
export async function chatCompletions(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const request = await readChatRequest(body, engine)
  const begun = await begin(exchange, engine, {
    body,
    idPrefix: 'chatcmpl-',
    promptIds: request.promptIds,
    params: request.params,
    maxTokens: request.maxTokens,
    maxTokensParam: request.maxTokensParam,
    truncatePromptTokens: request.truncatePromptTokens,
    stream: request.stream,
    constraint: () => request.constraint,
  })
  if (begun === undefined) return
  const answer = new ChatAnswer(engine, request, begun)
  await (request.stream ? answer.stream(exchange) : answer.whole(exchange))
}

/** The name a real server derives from its build and settings. */
export function fingerprintOf(engine: Engine): string {
  return `scripted-engine-${engine.profile.model}`
}

class ChatAnswer {
  readonly #engine: Engine
  readonly #request: ChatRequest
  readonly #begun: Begun
  readonly #setting: MessageSetting
  readonly #style: LogprobStyle | undefined
  readonly #showIds: boolean
  readonly #head: Readonly<Record<string, unknown>>

  constructor(engine: Engine, request: ChatRequest, begun: Begun) {
    this.#engine = engine
    this.#request = request
    this.#begun = begun
    this.#setting = { ...request, thinkingOpen: begun.thinkingOpen }
    // Hidden reasoning hides the per-token facts too, or they would show it.
    const hidden = !request.includeReasoning
    const wanted = request.params.topLogprobs
    const refused = engine.options.wire === 'openai' && !engine.options.openaiLogprobs
    this.#style =
      wanted === undefined || hidden || refused || begun.faults.find('null_logprobs') !== undefined
        ? undefined
        : { vocabulary: engine.profile.vocabulary, tokensAsIds: request.tokensAsIds, topLogprobs: wanted }
    this.#showIds = request.returnTokenIds && !hidden && engine.options.wire !== 'openai'
    const { generation } = begun
    this.#head = {
      id: generation.plan.requestId,
      object: 'chat.completion.chunk',
      created: generation.created,
      model: servedAs(engine, generation),
    }
  }

  async whole(exchange: Exchange): Promise<void> {
    const { generation, faults, promptIds } = this.#begun
    for await (const _step of generation.steps()) if (exchange.response.destroyed) return
    const choices = generation.choices.map((choice) => this.#wholeChoice(choice))
    const usage = { ...this.#usage(generation.outputTokens, generation.choices), prompt_tokens_details: null }
    const vllm = {
      prompt_logprobs: null,
      prompt_token_ids: this.#showIds ? [...promptIds] : null,
      prompt_text: null,
      kv_transfer_params: null,
    }
    const answer = {
      ...this.#head,
      object: 'chat.completion',
      choices,
      service_tier: null,
      system_fingerprint: fingerprintOf(this.#engine),
      usage,
      ...(this.#engine.options.wire === 'openai' ? {} : vllm),
    }
    await sendWhole(exchange, wireJson(answer, faults), faults)
  }

  #wholeChoice(choice: Choice): Record<string, unknown> {
    const message = chatMessage(choice.text, this.#engine.profile, this.#setting)
    const style = this.#style
    const { faults } = this.#begun
    const content =
      style === undefined ? undefined : choice.draws.map((drawn, at) => chatLogprob(drawn, at + 1, style, faults))
    return {
      index: choice.index,
      message,
      logprobs: content === undefined ? null : { content },
      finish_reason: chatFinish(choice.finish?.reason ?? 'abort', 'tool_calls' in message, this.#request.toolChoice),
      ...(this.#engine.options.wire === 'openai'
        ? {}
        : {
            stop_reason: choice.finish?.stop ?? null,
            token_ids: this.#showIds ? choice.ids : null,
            routed_experts: this.#experts(choice),
          }),
    }
  }

  /** `--enable-return-routed-experts`. */
  #experts(choice: Choice): string | null {
    const given = this.#engine.options.routedExperts
    return given ? routedExpertsNpy(this.#begun.promptIds, choice.ids) : null
  }

  async stream(exchange: Exchange): Promise<void> {
    const { generation, faults, promptIds } = this.#begun
    const events = new EventStream(exchange, faults)
    const writers = generation.choices.map((choice) => new ChoiceWriter(choice, this.#parser()))
    let first = true
    for await (const step of generation.steps()) {
      if (first) {
        first = false
        for (const choice of generation.choices) await events.send(this.#roleChunk(choice.index, promptIds), 'token')
      }
      const writer = writers[step.choice]
      const data = writer === undefined ? undefined : this.#stepChunk(writer, step)
      if (data !== undefined)
        await events.send(data, step.finish === undefined ? 'token' : 'finish', writer?.choice.ids.length)
      if (events.over) return
    }
    if (this.#request.includeUsage) {
      const usage = this.#usage(generation.outputTokens, generation.choices)
      await events.send(
        JSON.stringify({ ...this.#head, choices: [], usage, system_fingerprint: fingerprintOf(this.#engine) }),
        'usage',
      )
    }
    await events.done()
  }

  #parser(): AnswerParser {
    return answerParser(this.#engine.profile, this.#request.toolChoice, this.#begun.thinkingOpen)
  }

  #roleChunk(index: number, promptIds: Int32Array): string {
    const choice = { index, delta: { role: this.#request.role, content: '' }, logprobs: null, finish_reason: null }
    const ids =
      this.#engine.options.wire === 'openai' ? {} : { prompt_token_ids: this.#showIds ? [...promptIds] : null }
    return JSON.stringify({ ...this.#head, choices: [choice], ...this.#continuousUsage(0, []), ...ids })
  }

  /** Undefined when a token shows nothing and its ids and logprobs were not asked for. */
  #stepChunk(writer: ChoiceWriter, step: ChoiceStep): string | undefined {
    const { faults } = this.#begun
    const { choice } = writer
    const parts = writer.parser.push(step.text)
    if (step.finish !== undefined) parts.push(...writer.parser.end())
    writer.called ||= parts.some((part) => part.kind === 'call')
    const delta = chatDelta(parts, this.#setting)
    const style = this.#style
    if (delta === undefined && step.finish === undefined && style === undefined && !this.#showIds) return undefined
    const token = choice.ids.length
    const drop = faults.find('drop_token_ids')
    const dropped = drop !== undefined && token % drop.every === 0
    const content =
      style === undefined || step.draw === undefined ? undefined : [chatLogprob(step.draw, token, style, faults)]
    const last = step.finish !== undefined
    const ids = step.draw === undefined ? [] : [step.draw.id]
    const chunk = {
      ...this.#head,
      choices: [
        {
          index: choice.index,
          delta: delta ?? {},
          logprobs: content === undefined ? null : { content },
          finish_reason:
            step.finish === undefined ? null : chatFinish(step.finish.reason, writer.called, this.#request.toolChoice),
          ...(last && this.#engine.options.wire !== 'openai' ? { stop_reason: step.finish.stop } : {}),
          ...(this.#engine.options.wire === 'openai' ? {} : { token_ids: this.#showIds && !dropped ? ids : null }),
        },
      ],
      ...this.#continuousUsage(token, [choice]),
      ...(last && !this.#request.includeUsage ? { system_fingerprint: fingerprintOf(this.#engine) } : {}),
    }
    return wireJson(chunk, faults)
  }

  #continuousUsage(completion: number, choices: readonly Choice[]): Record<string, unknown> {
    return this.#request.continuousUsage ? { usage: this.#usage(completion, choices) } : {}
  }

  #usage(completion: number, choices: readonly Choice[]): Record<string, unknown> {
    const { profile } = this.#engine
    const counts = choices.map((choice) => reasoningTokens(choice.ids, profile, this.#begun.thinkingOpen) ?? 0)
    const reasoning = profile.thinks ? counts.reduce((sum, count) => sum + count, 0) : undefined
    return usageOf({ prompt: this.#begun.promptIds.length, completion, reasoning }, this.#begun.faults)
  }
}

/** A choice with the parser that turns its text into deltas. */
class ChoiceWriter {
  readonly choice: Choice
  readonly parser: AnswerParser
  called = false

  constructor(choice: Choice, parser: AnswerParser) {
    this.choice = choice
    this.parser = parser
  }
}
