import { editObject, isPaddockError, scanMembers } from '../../../core/index.ts'
import { parseEngineJson } from '../../dialects/chat/answer.ts'
import { readIds } from '../../dialects/chat/chunk-scan.ts'
import { choiceIndexOf, noPrompt, tokenIdOf } from '../../dialects/chat/wire-values.ts'
import type { LooseObject } from '../../session/sampling.ts'
import { tryEngine, tryEngineBytes } from '../http.ts'
import { contextLength } from '../models.ts'
import { PromptIds } from '../prompt-ids.ts'
import type {
  ChatText,
  DerenderFacts,
  Generated,
  GeneratedPart,
  GenerateTerms,
  RenderedPrompt,
  TokenEngine,
} from '../token-engine.ts'

const paths = {
  render: '/v1/chat/completions/render',
  generate: '/inference/v1/generate',
  derender: '/v1/chat/completions/derender',
} as const

/** vLLM writes this where a logprob is minus infinity, and its schemas take no other stand-in. */
const floor = -9999

/** `SamplingParams.max_tokens` of vLLM. */
const builtInMaxTokens = 16

/**
 * vLLM's render, generate and derender routes (`vllm serve --enable-scale-out`; docs.vllm.ai v0.32.0 "Renderer APIs",
 * "Derenderer APIs", `entrypoints/scale_out/token_in_token_out/protocol.py`). Run against vLLM 0.32.0: `test/real`.
 */
export function vllmTokens(root: string, apiKey: string | null): TokenEngine {
  return {
    async probe() {
      const chat = { messages: [{ role: 'user', content: 'x' }], max_tokens: 1 }
      const rendered = await tryEngine(root, paths.render, apiKey, chat)
      const ids = rendered.status < 400 ? rendered.body?.['token_ids'] : null
      if (!Array.isArray(ids) || ids.length === 0) return null
      // A body without ids is refused by the route, and not found where there is none. Nothing is generated.
      const generates = await tryEngine(root, paths.generate, apiKey, {})
      if (generates.status < 400 || [401, 403, 404, 405].includes(generates.status)) return null
      const choice = { index: 0, token_ids: ids.slice(0, 1), finish_reason: 'stop', logprobs: null }
      const about = { prompt_token_ids: ids, chat_request: chat }
      const whole = await tryEngine(root, paths.derender, apiKey, {
        ...about,
        generate_response: { request_id: 'probe', choices: [choice] },
        prompt_tokens: ids.length,
      })
      if (whole.status >= 400 || !Array.isArray(whole.body?.['choices'])) return null
      const step = await tryEngine(root, paths.derender, apiKey, {
        ...about,
        stream: true,
        generate_chunk: { request_id: 'probe', choices: [choice] },
        stream_state: null,
      })
      const models = await tryEngine(root, '/v1/models', apiKey)
      return {
        way: 'derender',
        streams: step.status < 400 && isObject(step.body?.['stream_state']),
        endsTurns: true,
        maxModelLen: contextLength(models.body, null),
      }
    },
    ask: ({ path, body }) => tryEngineBytes(root, path, apiKey, body),
    render: (chat) => ({ path: paths.render, body: chat }),
    readRender,
    generate: (prompt, ids, how) => ({ path: paths.generate, body: generateBody(prompt, ids, how) }),
    readGenerated,
    async derenderWhole(facts, generated, ask) {
      const body = derenderBody(wholeContext(facts), {
        generate_response: { request_id: facts.callId, choices: generated.parts.map(wirePart), usage: null },
        prompt_tokens: facts.promptIds.ids.length,
      })
      const reply = await ask({ path: paths.derender, body })
      const completion = reply.status >= 400 ? null : parseEngineJson(reply.body)
      return Array.isArray(completion?.['choices']) ? completion : null
    },
    steps: {
      ask: (facts, part, state) => ({
        path: paths.derender,
        body: derenderBody(stepContext(facts), {
          stream: true,
          generate_chunk: { request_id: facts.callId, choices: [wirePart(part)] },
          stream_state: state,
        }),
      }),
      read(reply) {
        const body = parseEngineJson(reply)
        const chunk = body?.['chunk']
        return isObject(chunk) ? { chunk, state: body?.['stream_state'] ?? null } : null
      },
    },
  }
}

/** Ids are read from their bytes: a prompt has tens of thousands, and a value for each would be garbage at once. */
function readRender(reply: Buffer): RenderedPrompt | null {
  const scanned = scannedOrNull(reply)
  const value = (name: string) => {
    const member = scanned?.members.findLast(({ key }) => key === name)
    return member === undefined ? null : reply.subarray(member.valueStart, member.valueEnd)
  }
  const [text, params, features] = [value('token_ids'), value('sampling_params'), value('features')]
  const ids = text === null ? null : readIds(text, 0, text.length)
  if (ids === null || text === null || params?.[0] !== 0x7b) return null
  const media = features !== null && features.toString() !== 'null'
  return { ids: new PromptIds(ids, text), media, reply, scanned }
}

function scannedOrNull(bytes: Buffer): ReturnType<typeof scanMembers> | null {
  try {
    return scanMembers(bytes)
  } catch (cause) {
    if (isPaddockError(cause)) return null
    throw cause
  }
}

/** The rendered request with other ids: sampling parameters, constraints and schemas keep their bytes. */
function generateBody(prompt: RenderedPrompt, ids: PromptIds, { streamed, chat, spent = 0 }: GenerateTerms): Buffer {
  const scanned = prompt.scanned ?? scanMembers(prompt.reply)
  const params = scanned.members.findLast((member) => member.key === 'sampling_params')
  const given = params === undefined ? Buffer.from('{}') : prompt.reply.subarray(params.valueStart, params.valueEnd)
  const read = parseEngineJson(given)
  // A render leaves out what is as built in, and a generate without max_tokens stops after 16 on an older server and at
  // the end of the context on a newer one. Where the client set none, the rendered value is what the context leaves
  // behind the rendered prompt.
  const told = read?.['max_tokens']
  const asked = typeof told === 'number' ? told : builtInMaxTokens
  const bounded = chat.text('max_tokens') !== null || chat.text('max_completion_tokens') !== null
  // What was sampled in an earlier leg counts against it.
  const grown = bounded ? spent : ids.ids.length - prompt.ids.ids.length
  // Never below one: a prompt that fills the window must be refused as what it is, a context overflow.
  const room = Math.max(1, asked - grown)
  const sampling = editObject(given, {
    set: {
      ...(room === told ? {} : { max_tokens: String(room) }),
      ...(typeof read?.['logprobs'] === 'number' ? {} : { logprobs: '0' }),
      output_kind: streamed ? '1' : '2',
    },
  })
  const set = {
    ...(ids === prompt.ids ? {} : { token_ids: ids.text }),
    sampling_params: sampling.toString(),
    stream: String(streamed),
    stream_options: streamed ? '{"include_usage":true}' : 'null',
    return_token_ids: 'true',
  }
  return editObject(prompt.reply, { set }, scanned)
}

function readGenerated(payload: Buffer): Generated | null {
  const { promptIds, rest } = withoutPrompt(payload)
  const body = parseEngineJson(rest)
  if (body === null) return null
  const choices = body['choices']
  return {
    parts: Array.isArray(choices) ? choices.filter(isObject).map(readPart) : [],
    promptIds,
    usage: isObject(body['usage']) ? body['usage'] : null,
    created: typeof body['created'] === 'number' ? body['created'] : null,
    model: typeof body['model'] === 'string' ? body['model'] : null,
    error: isObject(body['error']) ? body['error'] : null,
  }
}

/** The echoed prompt and everything else: it is as long as the prompt, and the rest is short. */
function withoutPrompt(payload: Buffer): { readonly promptIds: Int32Array | null; readonly rest: Buffer } {
  const scanned = payload.includes('"prompt_token_ids"') ? scannedOrNull(payload) : null
  const member = scanned?.members.findLast(({ key }) => key === 'prompt_token_ids')
  if (scanned === null || member === undefined || payload[member.valueStart] !== 0x5b) {
    return { promptIds: null, rest: payload }
  }
  const promptIds = readIds(payload, member.valueStart, member.valueEnd) ?? noPrompt
  return { promptIds, rest: editObject(payload, { set: { prompt_token_ids: 'null' } }, scanned) }
}

function readPart(choice: LooseObject, position: number): GeneratedPart {
  const content = isObject(choice['logprobs']) ? choice['logprobs']['content'] : null
  const entries = Array.isArray(content) ? content.map((entry: unknown) => (isObject(entry) ? entry : {})) : []
  const ids = choice['token_ids']
  const versions = choice['weight_versions']
  return {
    index: choice['index'] === undefined ? position : choiceIndexOf(choice['index']),
    // An event without ids still names them in its logprobs.
    ids: Array.isArray(ids) ? ids.map(tokenIdOf) : entries.map(idOf).filter((id) => id !== null),
    logprobs: entries.map(({ logprob }) => (typeof logprob === 'number' && Number.isFinite(logprob) ? logprob : null)),
    entries,
    finishReason: typeof choice['finish_reason'] === 'string' ? choice['finish_reason'] : null,
    stopReason: null,
    text: null,
    routedExperts: typeof choice['routed_experts'] === 'string' ? choice['routed_experts'] : null,
    weightVersions: Array.isArray(versions)
      ? versions.filter(isObject).map((span) => ({
          version: String(span['version']),
          start: tokenIdOf(span['start']),
          end: tokenIdOf(span['end']),
        }))
      : [],
  }
}

/** `token_id`, or `token: "token_id:N"` before vLLM 0.32. */
function idOf(entry: LooseObject): number | null {
  if (typeof entry['token_id'] === 'number') return tokenIdOf(entry['token_id'])
  const named = typeof entry['token'] === 'string' ? /^token_id:(\d+)$/.exec(entry['token'])?.[1] : undefined
  return named === undefined ? null : tokenIdOf(Number(named))
}

/** A choice as derender takes it; the logprob entries carry the ids whose text is wanted. */
function wirePart(part: GeneratedPart): LooseObject {
  const content = part.ids.map((id, at) => ({
    token_id: id,
    token: `token_id:${id}`,
    rank: 1,
    top_logprobs: [],
    ...(part.entries.length === part.ids.length ? part.entries[at] : {}),
    logprob: part.logprobs[at] ?? floor,
  }))
  return {
    index: part.index,
    token_ids: part.ids,
    finish_reason: part.finishReason,
    logprobs: { content },
  }
}

/** Whole answers are parsed by themselves; of the prompt only the last few ids seed the detokenizer. */
const seedIds = 64

function wholeContext({ promptIds, chat }: DerenderFacts): string {
  return contextText(`[${promptIds.ids.subarray(-seedIds).join()}]`, chat)
}

const stepContexts = new WeakMap<DerenderFacts, string>()

/**
 * "With a parser configured, send the full list": parsers look for the last mark of thinking, which may stand anywhere in
 * the prompt (`protocol.py` at 006ebac2, DerenderChatStreamRequest), and the state that is carried does not hold it. So
 * all ids go with each step, but their text is made once.
 */
function stepContext(facts: DerenderFacts): string {
  const known = stepContexts.get(facts)
  if (known !== undefined) return known
  const text = contextText(facts.promptIds.text, facts.chat)
  stepContexts.set(facts, text)
  return text
}

/** The parsers look at tools, tool choice and template options; of the messages the last one will do. */
function contextText(promptIds: string, chat: ChatText): string {
  return `"prompt_token_ids":${promptIds},"chat_request":${chat.lastOnly}}`
}

function derenderBody(context: string, more: LooseObject): Buffer {
  return Buffer.from(`${JSON.stringify(more).slice(0, -1)},${context}`)
}

function isObject(value: unknown): value is LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
