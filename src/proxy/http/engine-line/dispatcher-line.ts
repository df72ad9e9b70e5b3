import { createRequire } from 'node:module'
import type * as undici from 'undici'
import type { Dispatcher, Pool } from 'undici'
import type { EngineLine, LineAsk, LineBreak, LineExchange, LineSink } from './contract.ts'
import { MalformedReply } from './reply-head.ts'
import { isUnreachable } from './unreachable.ts'

/** An engine behind TLS, or behind a dispatcher that was given: over undici. */
export class DispatcherLine implements EngineLine {
  private readonly base: URL
  private readonly headers: Readonly<Record<string, string>>
  private readonly pool: Pool | null
  private readonly freshPool: Pool | null
  private readonly given: Dispatcher | null

  /** `connections`: never fewer than the calls that may run, so that nothing queues out of sight. */
  constructor(
    base: URL,
    headers: Readonly<Record<string, string>>,
    of: { readonly dispatcher: Dispatcher | null; readonly connections: number },
  ) {
    this.base = base
    this.headers = { 'content-type': 'application/json', 'accept-encoding': 'identity', ...headers }
    this.given = of.dispatcher
    // Loaded by who needs it: engines on plain HTTP do not.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the package exports
    const packaged = createRequire(import.meta.url)('undici') as typeof undici
    const common = { connections: of.connections, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 } }
    this.pool = of.dispatcher === null ? new packaged.Pool(base.origin, { ...common, pipelining: 1 }) : null
    // Without pipelining undici keeps no connection alive: each request has one of its own.
    this.freshPool = of.dispatcher === null ? new packaged.Pool(base.origin, { ...common, pipelining: 0 }) : null
  }

  ask({ path, headers, body }: LineAsk, sink: LineSink, fresh: boolean): LineExchange {
    const dispatcher = (fresh ? this.freshPool : this.pool) ?? this.given
    const exchange = new DispatchedExchange()
    dispatcher?.dispatch(
      {
        origin: this.base.origin,
        path: `${this.base.pathname.replace(/\/$/, '')}${path}`,
        method: 'POST',
        headers: { ...this.headers, ...headers },
        body,
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      {
        onRequestStart: (controller) => exchange.began(controller),
        onResponseStart: (controller, status, answered) => {
          if (status === 101) controller.abort(new MalformedReply('it changed the protocol unasked'))
          if (!exchange.aborted && status >= 200) sink.head(status, answered)
        },
        onResponseData: (_controller, bytes) => {
          if (!exchange.aborted) sink.data(bytes)
        },
        onResponseEnd: () => {
          if (!exchange.aborted) sink.end()
        },
        onResponseError: (_controller, cause) => {
          if (!exchange.aborted) sink.broke({ cause, kind: kindOf(cause) })
        },
      },
    )
    return exchange
  }

  stats(): { readonly connections: number; readonly pending: number } {
    return { connections: this.pool?.stats.connected ?? 0, pending: this.pool?.stats.pending ?? 0 }
  }

  async close(): Promise<void> {
    await Promise.all([this.pool?.destroy(), this.freshPool?.destroy()])
  }
}

class DispatchedExchange implements LineExchange {
  aborted = false
  private controller: Dispatcher.DispatchController | null = null
  private halted = false

  began(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.aborted) controller.abort(new Error('aborted'))
    else if (this.halted) controller.pause()
  }

  pause(): void {
    this.halted = true
    this.controller?.pause()
  }

  resume(): void {
    this.halted = false
    this.controller?.resume()
  }

  abort(): void {
    if (this.aborted) return
    this.aborted = true
    this.controller?.abort(new Error('aborted'))
  }
}

function kindOf(cause: Error): LineBreak['kind'] {
  if (isUnreachable(cause)) return 'unreachable'
  if (cause instanceof MalformedReply || cause.message === 'bad upgrade') return 'malformed'
  const mismatch = 'code' in cause && cause.code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'
  return cause.name === 'HTTPParserError' || mismatch ? 'malformed' : 'died'
}
