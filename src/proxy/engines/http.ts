import type { request as undiciRequest } from 'undici'
import { PaddockError } from '../../core/index.ts'
import type { LooseObject } from '../session/sampling.ts'

/** The root of an engine from what people write: with or without `/v1`, with or without a trailing slash. */
export function engineRoot(url: string): string {
  return url.replace(/\/+$/, '').replace(/\/v1$/, '')
}

/** The URL of an engine as people may see it: without credentials. */
export function shownUrl(url: string): string {
  const shown = new URL(url)
  shown.username = ''
  shown.password = ''
  return shown.href.replace(/\/$/, '')
}

/** Asks an engine for JSON. Null where it answers with an error status. Throws `ENGINE_UNREACHABLE`. */
export async function askEngine(
  root: string,
  path: string,
  apiKey: string | null,
  body?: LooseObject,
): Promise<LooseObject | null> {
  const answer = await tryEngine(root, path, apiKey, body)
  return answer.status >= 400 ? null : answer.body
}

/** Asks an engine and gives status and JSON body, null where it is none. Throws `ENGINE_UNREACHABLE`. */
export async function tryEngine(
  root: string,
  path: string,
  apiKey: string | null,
  body?: LooseObject,
): Promise<{ readonly status: number; readonly body: LooseObject | null }> {
  return tryEngineText(root, path, apiKey, body === undefined ? null : JSON.stringify(body))
}

/** The same with a body that is JSON text already. */
export async function tryEngineText(
  root: string,
  path: string,
  apiKey: string | null,
  body: string | null,
): Promise<{ readonly status: number; readonly body: LooseObject | null }> {
  const { status, body: said } = await tryEngineBytes(root, path, apiKey, body)
  return { status, body: parseObject(said.toString()) }
}

/** The same with the bytes of the answer. */
export async function tryEngineBytes(
  root: string,
  path: string,
  apiKey: string | null,
  body: string | Buffer | null,
): Promise<{ readonly status: number; readonly body: Buffer }> {
  try {
    const { request } = await import('undici')
    const answer = await request(`${root}${path}`, {
      ...refusesUpgrades(),
      method: body === null ? 'GET' : 'POST',
      headers: {
        'content-type': 'application/json',
        ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      body,
      headersTimeout: body === null ? askTimeoutMs : answerTimeoutMs,
      bodyTimeout: body === null ? askTimeoutMs : answerTimeoutMs,
    })
    return { status: answer.statusCode, body: Buffer.from(await answer.body.arrayBuffer()) }
  } catch (cause) {
    throw new PaddockError('ENGINE_UNREACHABLE', `The engine at ${root} cannot be reached: ${reason(cause)}.`, {
      cause,
    })
  }
}

/** Tells an engine something and gives what it said. New weights take their time. Throws `ENGINE_UNREACHABLE`. */
export async function tellEngine(
  root: string,
  path: string,
  apiKey: string | null,
  body: unknown,
): Promise<{ readonly status: number; readonly text: string }> {
  try {
    const { request } = await import('undici')
    const answer = await request(`${root}${path}`, {
      ...refusesUpgrades(),
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      body: JSON.stringify(body),
      headersTimeout: tellTimeoutMs,
      bodyTimeout: tellTimeoutMs,
    })
    return { status: answer.statusCode, text: await answer.body.text() }
  } catch (cause) {
    throw new PaddockError('ENGINE_UNREACHABLE', `The engine at ${root} cannot be reached: ${reason(cause)}.`, {
      cause,
    })
  }
}

/** What an engine says of itself is there at once; what it computes first may wait for kernels that load or compile. */
const askTimeoutMs = 30_000
const answerTimeoutMs = 5 * 60_000
const tellTimeoutMs = 30 * 60_000

/** Behind a change of the protocol that nobody asked for no answer ever comes. */
function refusesUpgrades(): Pick<NonNullable<Parameters<typeof undiciRequest>[1]>, 'signal' | 'onInfo'> {
  const controller = new AbortController()
  return {
    signal: controller.signal,
    onInfo: ({ statusCode }) => {
      // Not in the middle of undici's reading.
      if (statusCode === 101) setImmediate(() => controller.abort(new Error('it changed the protocol unasked')))
    },
  }
}

function parseObject(text: string): LooseObject | null {
  try {
    const parsed: unknown = JSON.parse(text)
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : null
  } catch {
    return null
  }
}

/** A short reason from a socket or client error. */
export function reason(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  const message = cause.message.replace(/\.$/, '')
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : null
  return code === null || message.includes(code) ? message || cause.name : `${code} ${message}`.trim()
}
