import type { TokensHead } from '../../src/server/view/contract.ts'

/** A reply that says what is wrong and how to mend it. */
export class ViewerError extends Error {
  readonly code: string
  readonly fix: string

  constructor(code: string, message: string, fix: string) {
    super(message)
    this.code = code
    this.fix = fix
  }
}

/** Reads JSON of the viewer's API. Throws {@link ViewerError}. */
export async function read<T>(path: string, signal: AbortSignal): Promise<T> {
  const response = await ask(path, { signal })
  return (await response.json()) as T
}

/** Changes the code of a printed link for this browser's cookie. Throws {@link ViewerError}. */
export async function signIn(code: string): Promise<void> {
  await post('/view/sign-in', { code })
}

/** Changes a token for this browser's cookie. Throws {@link ViewerError}. */
export async function signInWith(token: string): Promise<void> {
  await post('/view/sign-in', { token })
}

/** Writes what a person said. The header is what only a script of this page can send. Throws {@link ViewerError}. */
export async function write(path: string, body: unknown): Promise<void> {
  await post(path, body, { 'x-paddock-annotate': '1' })
}

async function post(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  await ask(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

/** Sampled tokens of one choice, as the engine gave them. */
export interface Tokens {
  readonly head: TokensHead
  readonly ids: Int32Array
  /** NaN: the engine gave none. */
  readonly logprobs: Float32Array
}

/** Reads tokens: a length, a JSON head, then little-endian columns. Throws {@link ViewerError}. */
export async function readTokens(path: string, signal: AbortSignal): Promise<Tokens> {
  const bytes = await (await ask(path, { signal })).arrayBuffer()
  const length = new DataView(bytes).getUint32(0, true)
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length))) as TokensHead
  const start = 4 + length
  // Columns begin wherever the head ends, so they are copied to where numbers may stand.
  const column = (from: number): ArrayBuffer => bytes.slice(start + from, start + from + 4 * head.n)
  return { head, ids: new Int32Array(column(0)), logprobs: new Float32Array(column(4 * head.n)) }
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(path, { credentials: 'same-origin', ...init }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ViewerError('UNREACHABLE', 'The viewer does not answer.', 'Start it again: `paddock view`')
  })
  if (response.ok) return response
  const said = (await response.json().catch(() => null)) as {
    error?: { code: string; message: string; fix: string }
  } | null
  const { code = String(response.status), message = response.statusText, fix = '' } = said?.error ?? {}
  throw new ViewerError(code, message, fix)
}
