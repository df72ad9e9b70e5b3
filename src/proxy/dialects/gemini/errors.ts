import type { PaddockError } from '../../../core/index.ts'
import { engineRefusal } from '../chat/errors.ts'
import type { EngineRefusal, WireError } from '../contract.ts'
import { readOverflow } from '../translate/overflow.ts'

/** Google's error shape (`{"error":{code,message,status}}`, google.rpc.Status as JSON). */
export function geminiError(error: PaddockError, requestId?: string): WireError {
  return {
    status: error.status,
    body: Buffer.from(errorText(error.status, fullMessage(error))),
    headers: headers(requestId),
  }
}

/** The same error inside a stream that has already begun. */
export function geminiErrorEvent(error: PaddockError): Buffer {
  return Buffer.from(`data: ${errorText(error.status, fullMessage(error))}\n\n`)
}

/** What an engine said instead of an answer. Overflows are told in Google's words, which clients know. */
export function geminiRefusal(
  status: number,
  body: Buffer,
  retryAfter: string | null,
  requestId: string,
): EngineRefusal {
  const refusal = engineRefusal(status, body, retryAfter, requestId)
  const { input, limit } = readOverflow(refusal.message)
  const told =
    refusal.error.code === 'CONTEXT_OVERFLOW' && input !== null && limit !== null
      ? `The input token count (${input}) exceeds the maximum number of tokens allowed (${limit}). ${refusal.message}`
      : refusal.message
  return {
    ...refusal,
    wire: {
      status,
      body: Buffer.from(errorText(status, told)),
      headers: { ...headers(requestId), ...(retryAfter === null ? {} : { 'retry-after': retryAfter }) },
    },
  }
}

const statuses: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  413: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  504: 'DEADLINE_EXCEEDED',
}

function errorText(code: number, message: string): string {
  const status = statuses[code] ?? (code >= 500 ? 'UNAVAILABLE' : 'INVALID_ARGUMENT')
  return JSON.stringify({ error: { code, message, status } })
}

function fullMessage(error: PaddockError): string {
  return `${error.message.replace(/\.$/, '')}. Fix: ${error.fix} (${error.code})`
}

function headers(requestId: string | undefined): Record<string, string> {
  return { 'content-type': 'application/json', ...(requestId === undefined ? {} : { 'x-request-id': requestId }) }
}
