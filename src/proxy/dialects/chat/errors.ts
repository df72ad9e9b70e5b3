import { type ErrorCode, PaddockError } from '../../../core/index.ts'
import type { EngineRefusal, WireError } from '../contract.ts'
import { refusalReason } from '../refusal-reasons.ts'

/** Codes after which the same request can succeed later; SDKs retry on them by themselves. */
export const retryableCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'ENGINE_DIED',
  'ENGINE_TIMEOUT',
  'ENGINE_UNREACHABLE',
  'PROXY_DRAINING',
  'PROXY_OVERLOADED',
])

/**
 * OpenAI's error shape (`{"error":{message,type,param,code}}`) with our code in `code` and the fix in `message`.
 * `x-should-retry: false` keeps the OpenAI SDKs from repeating what cannot succeed.
 */
export function chatError(error: PaddockError, requestId?: string): WireError {
  return {
    status: error.status,
    body: Buffer.from(errorText(error)),
    headers: {
      'content-type': 'application/json',
      ...(retryableCodes.has(error.code) ? {} : { 'x-should-retry': 'false' }),
      ...(requestId === undefined ? {} : { 'x-request-id': requestId }),
    },
  }
}

/** The same error inside a stream that has already begun. */
export function chatErrorEvent(error: PaddockError): Buffer {
  return Buffer.from(`data: ${errorText(error)}\n\n`)
}

function errorText(error: PaddockError): string {
  const param = typeof error.data['field'] === 'string' ? error.data['field'] : null
  return JSON.stringify({
    error: {
      message: `${error.message.replace(/\.$/, '')}. Fix: ${error.fix}`,
      type: errorType(error),
      param,
      code: error.code,
    },
  })
}

function errorType(error: PaddockError): string {
  if (error.status === 401) return 'authentication_error'
  if (error.status === 403) return 'permission_error'
  if (error.status === 404) return 'not_found_error'
  if (error.status === 429) return 'rate_limit_error'
  return error.status >= 500 ? 'server_error' : 'invalid_request_error'
}

/**
 * Reads an engine's error body: OpenAI's shape, vLLM's older flat shape (`{"object":"error","message",…}`, before
 * 0.10) or any text. Status and retry-after stay the engine's.
 */
export function engineRefusal(
  status: number,
  body: Buffer,
  retryAfter: string | null,
  requestId: string,
): EngineRefusal {
  const said = readEngineError(body)
  const reason = refusalReason({ status, ...said })
  const error = new PaddockError(reason.code, said.message, { data: { status, engineCode: said.code } })
  const code = reason.code === 'CONTEXT_OVERFLOW' ? 'context_length_exceeded' : said.code
  const text = JSON.stringify({
    error: { message: said.message, type: said.type ?? errorType(error), param: said.param, code },
  })
  return {
    error,
    code: error.code,
    message: said.message,
    blames: reason.blames,
    wire: {
      status,
      body: Buffer.from(text),
      headers: {
        'content-type': 'application/json',
        'x-request-id': requestId,
        ...(retryAfter === null ? {} : { 'retry-after': retryAfter }),
        ...(status >= 400 && status < 500 && status !== 408 && status !== 409 && status !== 429
          ? { 'x-should-retry': 'false' }
          : {}),
      },
    },
  }
}

function readEngineError(body: Buffer): { message: string; type: string | null; param: string | null; code: string } {
  const text = body.toString('utf8')
  const fallback = {
    message: text.slice(0, 2000) || 'The engine gave no reason.',
    type: null,
    param: null,
    code: 'ENGINE_ERROR',
  }
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return fallback
  }
  const root = object(parsed)
  const error = 'error' in root ? object(root['error']) : root
  const message = error['message'] ?? root['error'] ?? root['detail']
  if (typeof message !== 'string') return fallback
  return {
    message,
    type: typeof error['type'] === 'string' ? error['type'] : null,
    param: typeof error['param'] === 'string' ? error['param'] : null,
    code: typeof error['code'] === 'string' ? error['code'] : 'ENGINE_ERROR',
  }
}

function object(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
