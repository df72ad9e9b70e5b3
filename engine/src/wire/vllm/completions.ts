import { validationError } from '../../errors.ts'
import { scoreIds } from '../../policy/score.ts'
import { readSampling } from '../../generation/sampling.ts'
import { readCount, readFlag, readObject, readTokenIds } from '../../json/read.ts'
import { begin } from '../begin.ts'
import { servedAs } from '../lora.ts'
import { wireJson, wireLogprob } from '../logprobs.ts'
import { EventStream, sendWhole } from '../stream.ts'
import { checkModel } from './chat-request.ts'
import { usageOf } from './usage.ts'
import type { Engine } from '../../engine.ts'
import type { Draw } from '../../generation/sampling.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { JsonObject } from '../../json/lossless.ts'
import type { Begun } from '../begin.ts'

const DEFAULT_MAX_TOKENS = 16

/**
 * `POST /v1/completions` with one prompt, as text or as ids (vLLM `entrypoints/openai/completion/protocol.py`). Ids come
 * back per choice, prompt ids too, and once while streaming.
 */
export async function completions(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  checkModel(body, engine)
  const streamOptions = readObject(body, 'stream_options') ?? new Map()
  const stream = readFlag(body, 'stream') ?? false
  const begun = await begin(exchange, engine, {
    body,
    idPrefix: 'cmpl-',
    promptIds: await promptIds(body, engine),
    params: readSampling(body, readCount(body, 'logprobs')),
    maxTokens: readCount(body, 'max_tokens') ?? DEFAULT_MAX_TOKENS,
    maxTokensParam: 'max_tokens',
    truncatePromptTokens: readCount(body, 'truncate_prompt_tokens'),
    stream,
    constraint: () => ({ kind: 'free' }),
  })
  if (begun === undefined) return
  const wanted = readCount(body, 'prompt_logprobs')
  // vLLM 0.32.0, `entrypoints/openai/completion/protocol.py` check_logprobs.
  if (wanted !== undefined && stream)
    throw validationError('`prompt_logprobs` are not available when `stream=True`.', 'prompt_logprobs')
  const scored = wanted === undefined ? null : await promptLogprobs(begun, engine)
  const showIds = readFlag(body, 'return_token_ids') ?? false
  if (stream)
    await streamed(exchange, engine, begun, { showIds, usage: readFlag(streamOptions, 'include_usage') ?? false })
  else await whole(exchange, engine, begun, { showIds, scored })
}

async function promptIds(body: JsonObject, engine: Engine): Promise<Int32Array> {
  const prompt = body.get('prompt') ?? null
  if (typeof prompt === 'string') return engine.profile.vocabulary.encode(prompt)
  if (Array.isArray(prompt) && prompt.length === 1 && (typeof prompt[0] === 'string' || Array.isArray(prompt[0]))) {
    return promptIds(new Map([['prompt', prompt[0]]]), engine)
  }
  const ids = readTokenIds(body, 'prompt', engine.profile.vocabulary.size)
  if (ids === undefined || ids.length === 0)
    throw validationError('Either prompt or prompt_embeds must be provided', 'prompt')
  return ids
}

/** vLLM's list of `{id: {logprob, rank, decoded_token}}`, null first; with 0 alternatives the prompt's own id alone. */
async function promptLogprobs({ promptIds, faults }: Begun, engine: Engine): Promise<readonly unknown[]> {
  const scores = await scoreIds(promptIds, engine)
  const list = Array.from(promptIds, (id, at) => {
    const logprob = scores[at]
    if (logprob === null || logprob === undefined) return null
    const entry = {
      logprob: wireLogprob(logprob, at + 1, faults),
      rank: 1,
      decoded_token: engine.profile.vocabulary.decode([id]),
    }
    return { [id]: entry }
  })
  return faults.find('wrong_usage') === undefined ? list : list.slice(0, -1)
}

async function whole(
  exchange: Exchange,
  engine: Engine,
  begun: Begun,
  { showIds, scored }: { readonly showIds: boolean; readonly scored: readonly unknown[] | null },
): Promise<void> {
  const { generation, faults } = begun
  for await (const _step of generation.steps()) if (exchange.response.destroyed) return
  const answer = {
    id: generation.plan.requestId,
    object: 'text_completion',
    created: generation.created,
    model: servedAs(engine, generation),
    choices: generation.choices.map((choice) => ({
      index: choice.index,
      text: choice.text,
      logprobs: logprobs(choice.draws, 1, 0, engine, begun),
      finish_reason: choice.finish?.reason ?? 'abort',
      stop_reason: choice.finish?.stop ?? null,
      token_ids: showIds ? choice.ids : null,
      prompt_logprobs: scored,
      prompt_token_ids: showIds ? [...begun.promptIds] : null,
    })),
    service_tier: null,
    system_fingerprint: null,
    usage: usageOf(
      { prompt: begun.promptIds.length, completion: generation.outputTokens, reasoning: undefined },
      faults,
    ),
    kv_transfer_params: null,
  }
  await sendWhole(exchange, wireJson(answer, faults), faults)
}

async function streamed(
  exchange: Exchange,
  engine: Engine,
  begun: Begun,
  asked: { showIds: boolean; usage: boolean },
): Promise<void> {
  const { generation, faults } = begun
  const events = new EventStream(exchange, faults)
  const head = {
    id: generation.plan.requestId,
    object: 'text_completion',
    created: generation.created,
    model: servedAs(engine, generation),
  }
  for await (const step of generation.steps()) {
    const choice = generation.choices[step.choice]
    if (choice === undefined) continue
    const token = choice.ids.length
    const drop = faults.find('drop_token_ids')
    const hidden = !asked.showIds || (drop !== undefined && token % drop.every === 0)
    const drawn = step.draw === undefined ? [] : [step.draw]
    const chunk = {
      ...head,
      choices: [
        {
          index: choice.index,
          text: step.text,
          logprobs: logprobs(drawn, token, choice.text.length - step.text.length, engine, begun),
          finish_reason: step.finish?.reason ?? null,
          stop_reason: step.finish?.stop ?? null,
          prompt_token_ids: asked.showIds && token <= 1 ? [...begun.promptIds] : null,
          token_ids: hidden ? null : drawn.map(({ id }) => id),
        },
      ],
    }
    await events.send(wireJson(chunk, faults), step.finish === undefined ? 'token' : 'finish', token)
    if (events.over) return
  }
  if (asked.usage) {
    const usage = usageOf(
      { prompt: begun.promptIds.length, completion: generation.outputTokens, reasoning: undefined },
      faults,
    )
    await events.send(JSON.stringify({ ...head, choices: [], usage }), 'usage')
  }
  await events.done()
}

/** vLLM CompletionLogProbs: parallel lists. */
function logprobs(
  drawn: readonly Draw[],
  firstToken: number,
  firstOffset: number,
  engine: Engine,
  begun: Begun,
): unknown {
  const wanted = begun.generation.plan.params.topLogprobs
  if (wanted === undefined || begun.faults.find('null_logprobs') !== undefined) return null
  const tokens = drawn.map((one) => engine.profile.vocabulary.decode([one.id]))
  let offset = firstOffset
  return {
    text_offset: tokens.map((token) => {
      const start = offset
      offset += token.length
      return start
    }),
    token_logprobs: drawn.map((one, at) => wireLogprob(one.logprob, firstToken + at, begun.faults)),
    tokens,
    top_logprobs: drawn.map((one) =>
      Object.fromEntries(
        [one, ...one.top]
          .slice(0, wanted + 1)
          .map((other) => [engine.profile.vocabulary.decode([other.id]), other.logprob]),
      ),
    ),
  }
}
