import { randomUUID } from 'node:crypto'
import { imagesOf } from '../chat/images.ts'
import { thinkingOpenIn, viewPrompt } from '../chat/prompt-view.ts'
import { EngineError, validationError } from '../errors.ts'
import { Generation } from '../generation/generation.ts'
import { readText } from '../json/read.ts'
import { adapterOf } from './lora.ts'
import { answersTo } from '../policy/policy.ts'
import type { PromptView } from '../chat/prompt-view.ts'
import type { Engine } from '../engine.ts'
import type { CallFaults } from '../faults/fault-switch.ts'
import type { SamplingParams } from '../generation/sampling.ts'
import type { Exchange } from '../http/exchange.ts'
import type { JsonObject } from '../json/lossless.ts'
import type { Constraint } from '../policy/policy.ts'
import type { Wire } from '../options.ts'

/** What a route knows when it wants a generation. */
export interface Wish {
  readonly body: JsonObject
  readonly idPrefix: string
  readonly promptIds: Int32Array
  readonly params: SamplingParams
  readonly maxTokens: number | undefined
  readonly maxTokensParam: string
  readonly truncatePromptTokens?: number | undefined
  /** Ids in: what is asked beyond the context is cut instead of refused (vLLM GenerateRequest.build_tok_params). */
  readonly capOutput?: boolean
  readonly stream: boolean
  /** Reads the constraint once the prompt's tools are known. */
  readonly constraint: (view: PromptView) => Constraint
}

/** A generation about to run. */
export interface Begun {
  readonly generation: Generation
  readonly faults: CallFaults
  readonly promptIds: Int32Array
  /** Whether the prompt ends inside `<think>`. */
  readonly thinkingOpen: boolean
}

/** Headers that tell who calls; those that may hold a secret are neither journaled nor matched. */
const RECORDED_HEADER =
  /^(?!.*(?:api-key|token|auth|secret))(x-.*|openai-.*|session.*|user-agent|traceparent|idempotency-key)$/
const SESSION_FIELDS = ['session_id', 'user', 'cache_salt', 'rid', 'request_id'] as const

/**
 * Checks lengths, takes the faults that are meant for this call, asks the policy and sets the generation up. A fault
 * that refuses the call or cuts it before the headers strikes here; then undefined is returned and nothing is left to do.
 */
export async function begin(exchange: Exchange, engine: Engine, wish: Wish): Promise<Begun | undefined> {
  const { vocabulary, grammar } = engine.profile
  const sessions = sessionsOf(exchange, wish.body)
  const faults = engine.faults.take({ sessions, promptText: () => vocabulary.decode(wish.promptIds) })
  const httpError = faults.find('http_error')
  if (httpError !== undefined) throw orderedError(httpError.status, httpError.retryAfterSeconds)
  if (faults.find('die')?.at === 'before_headers') {
    await exchange.die()
    return undefined
  }
  if (engine.options.wire === 'vllm') checkSalt(readText(wish.body, 'cache_salt') ?? null)
  const adapter = adapterOf(wish.body, engine)
  const promptIds = shorten(wish, faults)
  const maxTokens = checkLength(promptIds.length, wish, engine.options)
  const view = viewPrompt(promptIds, vocabulary, grammar)
  const answer = await answersTo(view, engine.scripts, engine.profile, wish.constraint(view))
  const given =
    exchange.header('x-request-id') ?? readText(wish.body, 'request_id') ?? readText(wish.body, 'rid') ?? uuidHex()
  const requestId = wish.idPrefix + given
  const generation = new Generation(engine, {
    requestId,
    names: new Set([requestId, given]),
    route: exchange.url.pathname,
    adapter,
    stream: wish.stream,
    promptIds,
    images: imagesOf(wish.body).map((image) => image.sha256),
    params: wish.params,
    maxTokens,
    answer,
    faults,
    cacheSalt: readText(wish.body, 'cache_salt') ?? readText(wish.body, 'extra_key') ?? null,
    headers: Object.fromEntries(
      Object.entries(exchange.request.headers).flatMap(([name, value]) =>
        RECORDED_HEADER.test(name) && value !== undefined ? [[name, String(value)]] : [],
      ),
    ),
  })
  exchange.response.once('close', () => {
    const died = faults.find('die') !== undefined
    const ended = exchange.response.writableFinished ? 'finished' : died ? 'died' : 'client_closed'
    engine.journal.append({
      kind: 'delivery',
      requestId,
      time: new Date().toISOString(),
      bytes: exchange.bytesWritten,
      ended,
    })
    if (ended !== 'finished') generation.abort()
  })
  return { generation, faults, promptIds, thinkingOpen: thinkingOpenIn(view, vocabulary) }
}

/** A random id as vLLM makes them: 32 hex digits. */
export function uuidHex(): string {
  return randomUUID().replaceAll('-', '')
}

/** Fails a request that turns ids into a message where a standing order says so. */
export function failDerender(exchange: Exchange, engine: Engine, body: JsonObject): void {
  const subject = { sessions: sessionsOf(exchange, body), promptText: () => '' }
  const fault = engine.faults.take(subject, 'derender').find('derender_fails')
  if (fault !== undefined) throw orderedError(fault.status, undefined)
}

function sessionsOf(exchange: Exchange, body: JsonObject): string[] {
  const headers = Object.entries(exchange.request.headers).flatMap(([name, value]) =>
    RECORDED_HEADER.test(name) ? [String(value)] : [],
  )
  const fields = SESSION_FIELDS.map((field) => body.get(field)).filter((value) => typeof value === 'string')
  return [...headers, ...fields]
}

function orderedError(status: number, retryAfterSeconds: number | undefined): EngineError {
  const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
  if (status === 429)
    return new EngineError('Too many requests (ordered fault).', { status, type: 'TooManyRequests', headers })
  return new EngineError('Internal server error (ordered fault).', { status, type: 'InternalServerError', headers })
}

function shorten(wish: Wish, faults: CallFaults): Int32Array {
  const keep = faults.find('truncate_prompt')?.keep ?? wish.truncatePromptTokens
  return keep !== undefined && keep >= 0 && keep < wish.promptIds.length ? wish.promptIds.slice(-keep) : wish.promptIds
}

/** What has to fit into the context. */
export interface LengthWish {
  readonly maxTokens: number | undefined
  readonly maxTokensParam: string
  readonly capOutput?: boolean
}

/** vLLM 0.32.0, `entrypoints/generate/base/protocol.py` `validate_cache_salt`. */
function checkSalt(salt: string | null): void {
  if (salt === null || (salt.length <= 128 && !/[@/\\\0]/.test(salt))) return
  const rule = "must be at most 128 characters and must not contain '@', '/', '\\\\', or NUL."
  throw validationError(`Parameter 'cache_salt' ${rule}`, 'cache_salt')
}

/**
 * Prompt plus asked output must fit; what is not asked for is what is left. Returns how many tokens may come. Wordings of
 * vLLM (`renderers/params.py` TokenizeParams) and SGLang (`managers/tokenizer_manager.py` `_validate_one_request`).
 */
export function checkLength(
  promptTokens: number,
  wish: LengthWish,
  { maxModelLen, wire }: { readonly maxModelLen: number; readonly wire: Wire },
): number {
  const asked = wish.maxTokens
  if (asked !== undefined && asked < 1)
    throw validationError(`max_tokens must be at least 1, got ${asked}.`, wish.maxTokensParam, asked)
  if (wire === 'sglang') checkSglangLength(promptTokens, asked, maxModelLen)
  else checkVllmLength(promptTokens, wish, maxModelLen)
  return Math.min(asked ?? maxModelLen, maxModelLen - promptTokens)
}

function checkVllmLength(promptTokens: number, wish: LengthWish, maxModelLen: number): void {
  const asked = wish.maxTokens
  if (asked !== undefined && asked > maxModelLen && wish.capOutput !== true) {
    throw validationError(
      `${wish.maxTokensParam}=${asked} cannot be greater than max_model_len=${maxModelLen}. Please request fewer output tokens.`,
      wish.maxTokensParam,
      asked,
    )
  }
  const room = maxModelLen - (wish.capOutput === true ? 1 : (asked ?? 1))
  if (promptTokens > room) {
    throw validationError(
      `You passed ${promptTokens} input tokens and requested ${asked ?? 0} output tokens. However, the model's context length is only ${maxModelLen} tokens, resulting in a maximum input length of ${room} tokens. Please reduce the length of the input prompt.`,
      'input_tokens',
      promptTokens,
    )
  }
}

function checkSglangLength(promptTokens: number, asked: number | undefined, contextLength: number): void {
  if (promptTokens >= contextLength) {
    throw new EngineError(
      `The input (${promptTokens} tokens) is longer than the model's context length (${contextLength} tokens).`,
    )
  }
  if (asked !== undefined && asked + promptTokens > contextLength) {
    throw new EngineError(
      `Requested token count exceeds the model's maximum context length of ${contextLength} tokens. You requested a total of ${asked + promptTokens} tokens: ${promptTokens} tokens from the input messages and ${asked} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`,
    )
  }
}
