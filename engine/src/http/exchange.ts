import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as nextTurnOfLoop } from 'node:timers/promises'
import { EngineError } from '../errors.ts'
import { parseJson } from '../json/lossless.ts'
import type { JsonObject } from '../json/lossless.ts'

const MAX_BODY_BYTES = 256 * 1024 * 1024

/** One HTTP request with its answer. */
export class Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly url: URL
  #bytes = 0

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request
    this.response = response
    this.url = urlOf(request.url ?? '/')
  }

  /** A header as text; repeated ones joined. */
  header(name: string): string | undefined {
    const value = this.request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  /** The body as a JSON object. Throws a 400 for anything else. */
  async body(): Promise<JsonObject> {
    const parts: Buffer[] = []
    let size = 0
    for await (const part of this.request) {
      const bytes = Buffer.from(part)
      size += bytes.length
      if (size > MAX_BODY_BYTES) throw new EngineError('request body too large', { status: 413 })
      parts.push(bytes)
    }
    if (size === 0) return new Map()
    try {
      const value = parseJson(Buffer.concat(parts).toString('utf8'))
      if (value instanceof Map) return value
    } catch (error) {
      throw new EngineError(`JSON decode error: ${error instanceof Error ? error.message : String(error)}`)
    }
    throw new EngineError('Input should be a valid dictionary')
  }

  /** Bytes of the answer's body so far. */
  get bytesWritten(): number {
    return this.#bytes
  }

  json(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): void {
    this.text(JSON.stringify(value), status, { 'content-type': 'application/json', ...headers })
  }

  text(body: string, status = 200, headers: Readonly<Record<string, string>> = {}): void {
    const bytes = Buffer.from(body, 'utf8')
    this.#bytes += bytes.length
    this.response.writeHead(status, { 'content-length': String(bytes.length), ...headers })
    this.response.end(bytes)
  }

  empty(status = 200): void {
    this.response.writeHead(status, { 'content-length': '0' })
    this.response.end()
  }

  /** Refuses in the envelope of vLLM and OpenAI, or flat as SGLang does. */
  error(error: EngineError, shape: 'envelope' | 'flat'): void {
    this.json(shape === 'flat' ? error.flatBody() : error.body(), error.status, error.headers)
  }

  /** Sends the headers of an event stream. */
  openStream(): void {
    this.response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
    this.response.flushHeaders()
  }

  /** Writes raw bytes and waits while the client is slower than we are. Does nothing once the client is gone. */
  async write(text: string): Promise<void> {
    if (this.response.destroyed || this.response.writableEnded) return
    this.#bytes += Buffer.byteLength(text)
    if (this.response.write(text)) return
    const free = Promise.withResolvers<void>()
    const go = (): void => free.resolve()
    this.response.once('drain', go).once('close', go)
    await free.promise
    this.response.off('drain', go).off('close', go)
  }

  end(): void {
    this.response.end()
  }

  /** Cuts the connection in the middle of whatever is going on; what was written before still leaves. */
  async die(): Promise<void> {
    const { socket } = this.request
    // A response is handed to its socket on the next turn of the loop.
    await nextTurnOfLoop()
    if (socket.writableLength > 0 && !socket.destroyed) {
      const gone = Promise.withResolvers<void>()
      const go = (): void => gone.resolve()
      socket.once('drain', go).once('close', go)
      await gone.promise
    }
    socket.destroy()
  }
}

/** Of any request target, `//` and others that are no URL by themselves too. */
function urlOf(target: string): URL {
  return (
    URL.parse(target.startsWith('/') ? `http://engine${target}` : target, 'http://engine') ?? new URL('http://engine')
  )
}
