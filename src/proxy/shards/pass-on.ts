import { Agent, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http'
import { PaddockError } from '../../core/index.ts'
import { keyDigest } from '../session/keys.ts'
import type { ProxyShard } from './contract.ts'
import { shardOfKey } from './keys.ts'

/** Headers that are of one connection (RFC 9110, 7.6.1), and `expect`, which our own server has answered. */
const ofTheConnection: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'expect',
  'te',
  'trailer',
  'upgrade',
])

/** Passes requests that came here to the shard of their session, byte for byte. */
export class PassOn {
  readonly #shard: ProxyShard
  readonly #agent = new Agent({ keepAlive: true })
  readonly #running = new Set<Promise<void>>()

  constructor(shard: ProxyShard) {
    this.#shard = shard
  }

  /** The shard that a request with this key is for, where it is another one; null: ours. */
  shardOf(key: string | null): number | null {
    if (key === null) return null
    const found = shardOfKey(keyDigest(key), this.#shard.count)
    return found === this.#shard.index ? null : found
  }

  /** Resolves when the answer has begun, or its client is gone. Rejects with `SHARD_AWAY`. */
  pass(request: IncomingMessage, response: ServerResponse, index: number): Promise<void> {
    const origin = this.#shard.origin(index)
    const away = (cause?: unknown): PaddockError =>
      new PaddockError('SHARD_AWAY', `Shard ${index + 1} of ${this.#shard.count} does not answer.`, { cause })
    if (origin === null) return Promise.reject(away())
    const { hostname, port } = new URL(origin)
    const over = new Promise<void>((resolve) => response.once('close', resolve))
    this.#running.add(over)
    void over.then(() => this.#running.delete(over))
    return new Promise((resolve, reject) => {
      const { method, url: path } = request
      const headers = endToEnd(request.rawHeaders)
      const upstream = httpRequest({ agent: this.#agent, hostname, port, method, path, headers })
      upstream.setNoDelay(true)
      response.once('close', () => {
        if (!response.writableFinished) upstream.destroy()
        resolve()
      })
      upstream.once('response', (answer) => {
        // How it is framed is the business of each connection.
        const passed = endToEnd(answer.rawHeaders, 'transfer-encoding')
        if (answer.headers.connection === 'close') passed.push('connection', 'close')
        response.writeHead(answer.statusCode ?? 502, answer.statusMessage, passed)
        response.flushHeaders()
        answer.once('error', () => response.destroy())
        answer.pipe(response)
        resolve()
      })
      upstream.once('close', () => {
        request.unpipe(upstream)
        // What still comes of it is in the way of the next request.
        request.resume()
      })
      upstream.once('error', (cause) => {
        if (response.headersSent) response.destroy()
        else reject(away(cause))
      })
      request.pipe(upstream)
    })
  }

  /** Resolves when what is being passed on has ended: it is another shard's, which may go on when this one does not. */
  async close(): Promise<void> {
    await Promise.all(this.#running)
    this.#agent.destroy()
  }
}

/** Names and values as they came, without those of the connection. */
function endToEnd(raw: readonly string[], ...without: readonly string[]): string[] {
  const kept: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]]
    const lower = name.toLowerCase()
    if (!ofTheConnection.has(lower) && !without.includes(lower)) kept.push(name, value)
  }
  return kept
}
