import type { PaddockError } from '../../../core/index.ts'
import { engineRefusal, retryableCodes } from '../chat/errors.ts'
import type { EngineRefusal, WireError } from '../contract.ts'
import { readOverflow } from '../translate/overflow.ts'

/**
 * Anthropic's error shape (`{"type":"error","error":{type,message},"request_id"}`, reference "Errors"). `x-should-retry`
 * is what its SDKs and Claude Code obey.
 */
export function messagesError(error: PaddockError, requestId?: string): WireError {
  const status = error.code === 'PROXY_OVERLOADED' || error.code === 'PROXY_DRAINING' ? 529 : error.status
  return {
    status,
    body: Buffer.from(errorText(errorType(status), fullMessage(error), requestId, detailsOf(error))),
    headers: headers(requestId, retryableCodes.has(error.code) ? null : 'false'),
  }
}

/** The same error inside a stream that has already begun. */
export function messagesErrorEvent(error: PaddockError): Buffer {
  return Buffer.from(`event: error\ndata: ${errorText(errorType(error.status), fullMessage(error))}\n\n`)
}

/** What an engine said instead of an answer. Overflows are told in the words that Claude Code acts on. */
export function messagesRefusal(
  status: number,
  body: Buffer,
  retryAfter: string | null,
  requestId: string,
): EngineRefusal {
  const refusal = engineRefusal(status, body, retryAfter, requestId)
  const overflow = refusal.error.code === 'CONTEXT_OVERFLOW'
  const told = status === 503 ? 529 : status
  const message = overflow ? overflowMessage(refusal.message) : refusal.message
  return {
    ...refusal,
    wire: {
      status: told,
      body: Buffer.from(errorText(errorType(told), message, requestId)),
      headers: {
        ...headers(requestId, refusal.wire.headers['x-should-retry'] ?? null),
        ...(retryAfter === null ? {} : { 'retry-after': retryAfter }),
      },
    },
  }
}

/**
 * An engine's sentence as Anthropic says it: `prompt is too long: N tokens > M maximum` makes Claude Code compact, and
 * ``input length and `max_tokens` exceed context limit: N + K > M`` makes it ask for less.
 */
function overflowMessage(said: string): string {
  const { input, output, limit } = readOverflow(said)
  if (limit === null) return `prompt is too long: ${said}`
  if (input === null) {
    return `max_tokens: ${output ?? '?'} > ${limit}, which is the maximum allowed number of output tokens`
  }
  if (Number(input) >= Number(limit)) return `prompt is too long: ${input} tokens > ${limit} maximum`
  return `input length and \`max_tokens\` exceed context limit: ${input} + ${output ?? '?'} > ${limit}, decrease input length or \`max_tokens\` and try again`
}

/** What clients act on: at `thread_not_found` their SDK sends the whole conversation. */
function detailsOf(error: PaddockError): object | undefined {
  return error.code === 'THREAD_UNKNOWN' ? { error_code: 'thread_not_found' } : undefined
}

function errorText(type: string, message: string, requestId?: string, details?: object): string {
  return JSON.stringify({
    type: 'error',
    error: { type, message, details },
    ...(requestId === undefined ? {} : { request_id: requestId }),
  })
}

function fullMessage(error: PaddockError): string {
  return `${error.message.replace(/\.$/, '')}. Fix: ${error.fix} (${error.code})`
}

function errorType(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 403) return 'permission_error'
  if (status === 404) return 'not_found_error'
  if (status === 413) return 'request_too_large'
  if (status === 429) return 'rate_limit_error'
  if (status === 504) return 'timeout_error'
  if (status === 529 || status === 503) return 'overloaded_error'
  return status >= 500 ? 'api_error' : 'invalid_request_error'
}

function headers(requestId: string | undefined, shouldRetry: string | null): Record<string, string> {
  return {
    'content-type': 'application/json',
    ...(shouldRetry === null ? {} : { 'x-should-retry': shouldRetry }),
    ...(requestId === undefined ? {} : { 'request-id': requestId }),
  }
}
