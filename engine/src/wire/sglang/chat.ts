import { EngineError } from '../../errors.ts'
import { readCount, readFlag, readTokenIds } from '../../json/read.ts'
import { answerParser } from '../../parsers/index.ts'
import { begin, uuidHex } from '../begin.ts'
import { routedExpertsInt32 } from '../experts.ts'
import { chatLogprob, wireJson } from '../logprobs.ts'
import { EventStream, sendWhole } from '../stream.ts'
import { chatDelta, chatFinish, chatMessage } from '../vllm/chat-message.ts'
import { readChatRequest } from '../vllm/chat-request.ts'
import { reasoningTokens } from '../vllm/usage.ts'
import { finishReason, metaInfo } from './meta-info.ts'
import { sglangPrompt } from './render.ts'
import type { Engine } from '../../engine.ts'
import type { Choice } from '../../generation/choice.ts'
import type { Draw } from '../../generation/sampling.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Begun } from '../begin.ts'
import type { MessageSetting } from '../vllm/chat-message.ts'
import type { ChatRequest } from '../vllm/chat-request.ts'

/**
 * `POST /v1/chat/completions` as SGLang answers it (`srt/entrypoints/openai/protocol.py` at 004c82e0 and
 * `serving_chat.py`). `input_ids` take the place of the template, tools still drive the parsers. Ids and meta info come
 * only without streaming; a stream gives them in one `sglext` event at its end when body or headers ask (pull request
 * 34488; `--no-sglext` is a release before it). Releases before 0.5.13 ignore all of these members.
 */
export async function sglangChat(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const older = !engine.options.chatIds
  const given = older ? undefined : readTokenIds(body, 'input_ids', engine.profile.vocabulary.size)
  const request = await readChatRequest(body, engine, given ?? (await sglangPrompt(body, engine)))
  const flag = (name: string): boolean => !older && readFlag(body, name) === true
  const ext = (way: 'input' | 'output'): boolean =>
    engine.options.sglext &&
    (exchange.header(`x-sglext-return-${way}-ids`) === '1' || flag(`return_${way}_ids_in_sglext`))
  const asked = {
    promptIds: flag('return_prompt_token_ids'),
    ids: flag('return_token_ids'),
    metaInfo: flag('return_meta_info'),
    extInput: ext('input'),
    extOutput: ext('output'),
    top: readCount(body, 'top_logprobs') ?? 0,
    experts: engine.options.routedExperts && flag('return_routed_experts'),
  }
  if (request.stream) refuseIdsInStream(asked)
  const begun = await begin(exchange, engine, {
    body,
    idPrefix: '',
    promptIds: request.promptIds,
    params: request.params,
    maxTokens: request.maxTokens,
    maxTokensParam: request.maxTokensParam,
    stream: request.stream,
    constraint: () => request.constraint,
  })
  if (begun === undefined) return
  const answer = new SglangAnswer(engine, request, begun, asked)
  await (request.stream ? answer.stream(exchange) : answer.whole(exchange))
}

interface Asked {
  readonly promptIds: boolean
  readonly ids: boolean
  readonly metaInfo: boolean
  readonly extInput: boolean
  readonly extOutput: boolean
  readonly top: number
  readonly experts: boolean
}

function refuseIdsInStream(asked: Asked): void {
  const name = asked.promptIds
    ? 'return_prompt_token_ids'
    : asked.ids
      ? 'return_token_ids'
      : asked.metaInfo
        ? 'return_meta_info'
        : undefined
  if (name === undefined) return
  const where = name === 'return_token_ids' ? ' on /v1/chat/completions' : ''
  throw new EngineError(
    `${name} is not supported with streaming${where}. Please set stream=false when using ${name}=true.`,
    { type: 'BadRequest' },
  )
}

class SglangAnswer {
  readonly #engine: Engine
  readonly #request: ChatRequest
  readonly #begun: Begun
  readonly #asked: Asked
  readonly #setting: MessageSetting
  readonly #head: Readonly<Record<string, unknown>>

  constructor(engine: Engine, request: ChatRequest, begun: Begun, asked: Asked) {
    this.#engine = engine
    this.#request = request
    this.#begun = begun
    this.#asked = asked
    this.#setting = { ...request, thinkingOpen: begun.thinkingOpen }
    const { generation } = begun
    this.#head = {
      id: generation.plan.requestId,
      object: 'chat.completion',
      created: generation.created,
      model: engine.profile.model,
    }
  }

  async whole(exchange: Exchange): Promise<void> {
    const { generation, faults } = this.#begun
    for await (const _step of generation.steps()) if (exchange.response.destroyed) return
    const answer = {
      ...this.#head,
      choices: generation.choices.map((choice) => this.#wholeChoice(choice)),
      usage: this.#usage(generation.choices),
      metadata: { weight_version: this.#engine.weightVersion },
      ...this.#sglext(),
    }
    await sendWhole(exchange, wireJson(answer, faults), faults)
  }

  #wholeChoice(choice: Choice): Record<string, unknown> {
    const message = chatMessage(choice.text, this.#engine.profile, this.#setting)
    const calls = Array.isArray(message['tool_calls']) ? message['tool_calls'] : undefined
    const finish = chatFinish(choice.finish?.reason ?? 'abort', calls !== undefined, this.#request.toolChoice)
    const { promptIds, ids, metaInfo: meta } = this.#asked
    const logprobs = this.#request.params.topLogprobs !== undefined
    return {
      index: choice.index,
      message: {
        role: message['role'],
        // Never null, "to make sure retokenize consistency".
        content: message['content'] ?? '',
        reasoning_content: message['reasoning'],
        tool_calls: calls?.map((call: Record<string, unknown>, index) => ({ ...call, id: callId(), index })) ?? null,
      },
      logprobs: this.#logprobs(choice.draws, 1),
      finish_reason: finish,
      matched_stop: finishReason(choice)?.['matched'] ?? null,
      ...(promptIds || ids ? { prompt_token_ids: [...this.#begun.promptIds] } : {}),
      ...(ids ? { token_ids: choice.ids } : {}),
      ...(meta
        ? {
            meta_info: metaInfo(this.#engine, this.#begun, choice, {
              logprobs,
              text: true,
              top: this.#asked.top,
              experts: this.#asked.experts,
            }),
          }
        : {}),
    }
  }

  async stream(exchange: Exchange): Promise<void> {
    const { generation, faults } = this.#begun
    const events = new EventStream(exchange, faults)
    const head = { ...this.#head, object: 'chat.completion.chunk' }
    const parsers = generation.choices.map(() =>
      answerParser(this.#engine.profile, this.#request.toolChoice, this.#begun.thinkingOpen),
    )
    const called = generation.choices.map(() => false)
    const chunk = (index: number, delta: Record<string, unknown>, extra: Record<string, unknown>): string =>
      wireJson(
        {
          ...head,
          choices: [
            {
              index,
              delta: { role: null, content: null, reasoning_content: null, tool_calls: null, ...delta },
              logprobs: null,
              finish_reason: null,
              matched_stop: null,
              ...extra,
            },
          ],
          usage: null,
        },
        faults,
      )
    for await (const step of generation.steps()) {
      const choice = generation.choices[step.choice]
      const parser = parsers[step.choice]
      if (choice === undefined || parser === undefined) continue
      if (choice.ids.length === 1)
        await events.send(chunk(choice.index, { role: 'assistant', content: '' }, {}), 'token')
      const parts = parser.push(step.text)
      if (step.finish !== undefined) parts.push(...parser.end())
      called[step.choice] ||= parts.some((part) => part.kind === 'call')
      const delta = chatDelta(parts, this.#setting)
      if (delta !== undefined || step.draw !== undefined) {
        const logprobs = this.#logprobs(step.draw === undefined ? [] : [step.draw], choice.ids.length)
        if (delta !== undefined || logprobs !== null)
          await events.send(chunk(choice.index, sglangDelta(delta ?? {}), { logprobs }), 'token', choice.ids.length)
      }
      if (step.finish !== undefined) {
        const finish = chatFinish(step.finish.reason, called[step.choice] ?? false, this.#request.toolChoice)
        await events.send(
          chunk(choice.index, {}, { finish_reason: finish, matched_stop: finishReason(choice)?.['matched'] ?? null }),
          'finish',
          choice.ids.length,
        )
      }
      if (events.over) return
    }
    const ext = this.#sglext()
    if (ext.sglext !== undefined) await events.send(JSON.stringify({ ...head, choices: [], ...ext }), 'usage')
    if (this.#request.includeUsage)
      await events.send(JSON.stringify({ ...head, choices: [], usage: this.#usage(generation.choices) }), 'usage')
    await events.done()
  }

  #sglext(): { sglext?: Record<string, unknown> } {
    const { generation, faults, promptIds } = this.#begun
    const { experts, metaInfo: meta } = this.#asked
    if (!this.#asked.extInput && !this.#asked.extOutput && !experts) return {}
    const [first] = generation.choices
    const dropped = faults.find('drop_token_ids') !== undefined
    return {
      sglext: {
        ...(experts && !meta && first !== undefined
          ? { routed_experts: routedExpertsInt32(promptIds, first.ids) }
          : {}),
        ...(this.#asked.extInput ? { input_ids: [...promptIds] } : {}),
        ...(this.#asked.extOutput && !dropped ? { output_ids: generation.choices.map((choice) => choice.ids) } : {}),
      },
    }
  }

  #logprobs(drawn: readonly Draw[], firstToken: number): { content: unknown[] } | null {
    const top = this.#request.params.topLogprobs
    const { faults } = this.#begun
    if (top === undefined || faults.find('null_logprobs') !== undefined) return null
    const style = { vocabulary: this.#engine.profile.vocabulary, tokensAsIds: false, topLogprobs: top }
    return { content: drawn.map((one, at) => chatLogprob(one, firstToken + at, style, faults)) }
  }

  #usage(choices: readonly Choice[]): Record<string, unknown> {
    const { profile } = this.#engine
    const prompt = this.#begun.promptIds.length
    const completion =
      choices.reduce((sum, choice) => sum + choice.ids.length, 0) + (this.#begun.faults.find('wrong_usage')?.by ?? 0)
    const reasoning = choices.reduce(
      (sum, choice) => sum + (reasoningTokens(choice.ids, profile, this.#begun.thinkingOpen) ?? 0),
      0,
    )
    return {
      prompt_tokens: prompt,
      total_tokens: prompt + completion,
      completion_tokens: completion,
      prompt_tokens_details: null,
      reasoning_tokens: reasoning,
    }
  }
}

function callId(): string {
  return `call_${uuidHex().slice(0, 24)}`
}

/** SGLang says null where a part of a call is not repeated, and calls reasoning `reasoning_content`. */
function sglangDelta(delta: Record<string, unknown>): Record<string, unknown> {
  const { reasoning, tool_calls: calls, ...rest } = delta
  const named = Array.isArray(calls)
    ? calls.map((call: { id?: string; index: number; function: { name?: string; arguments?: string } }) => ({
        id: call.id === undefined ? null : callId(),
        index: call.index,
        type: 'function',
        function: { name: call.function.name ?? null, arguments: call.function.arguments ?? '' },
      }))
    : undefined
  return {
    ...rest,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    ...(named === undefined ? {} : { tool_calls: named }),
  }
}
