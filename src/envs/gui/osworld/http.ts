import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import { isPaddockError, PaddockError } from '../../../core/index.ts'

export const maxBodyBytes = 256 << 20

/** What a route answers with. */
export interface Answer {
  readonly status: number
  readonly type: string
  readonly body: string | Uint8Array
}

/** An answer in JSON. */
export function json(value: unknown, status = 200): Answer {
  return { status, type: 'application/json', body: JSON.stringify(value) }
}

/** An answer in words, as Flask gives a text. */
export function said(text: string, status = 200): Answer {
  return { status, type: 'text/html; charset=utf-8', body: text }
}

/** What a fault is answered with: the caller's own with its status, any other with 500. */
export function faultOf(error: unknown): Answer {
  const fault = isPaddockError(error) ? error : new PaddockError('INTERNAL', String(error), { cause: error })
  return json(
    { status: 'error', message: fault.line(), error: fault.line() },
    fault.family === 'request' ? fault.status : 500,
  )
}

/** Reads a body with a schema. Throws `BODY_INVALID_SHAPE`. */
export function fitted<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new PaddockError('BODY_INVALID_SHAPE', `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'does not fit'}`)
}

/** The JSON of a body; an empty one is an empty object. Throws `BODY_INVALID_JSON`. */
export function jsonOf(body: Buffer): unknown {
  try {
    return body.length === 0 ? {} : JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw new PaddockError('BODY_INVALID_JSON', 'The body is not JSON', { cause })
  }
}

/** Both forms that `requests` sends: urlencoded and multipart. Throws `BODY_INVALID_SHAPE`. */
export async function formOf({ headers }: IncomingMessage, body: Buffer): Promise<FormData> {
  try {
    const type = headers['content-type'] ?? 'application/x-www-form-urlencoded'
    return await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
  } catch (cause) {
    throw new PaddockError('BODY_INVALID_SHAPE', 'The body is no form', { cause })
  }
}

/** A text of a form; null when it has none of this name. */
export function textIn(form: FormData, name: string): string | null {
  const value = form.get(name)
  return typeof value === 'string' ? value : null
}
