import { Pool, type Dispatcher } from 'undici'
import { PaddockError } from '../core/index.ts'
import type { EngineAdapter } from './engines/contract.ts'
import { reason } from './engines/http.ts'

/** What comes back from the engine, in order. Exactly one of `end` and `failed` is the last. */
export interface UpstreamSink {
  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void
  chunk(bytes: Buffer): void
  end(): void
  failed(error: PaddockError): void
}

/** A request that is with the engine. */
export interface UpstreamRequest {
  pause(): void
  resume(): void
  /** Cuts the connection to the engine, which stops generating; the sink is told nothing more. */
  abort(): void
}

/**
 * Connections to one engine. The pool is never smaller than the admitted number of calls, so nothing queues out of
 * sight; undici's own timeouts are off because the proxy has its stall watchdog.
 */
export class Upstream {
  private readonly engine: EngineAdapter
  private readonly pool: Pool | null
  private readonly dispatcher: Dispatcher

  constructor(engine: EngineAdapter, maxInFlight: number) {
    this.engine = engine
    this.pool =
      engine.dispatcher === null
        ? new Pool(new URL(engine.url).origin, {
            connections: maxInFlight,
            pipelining: 1,
            headersTimeout: 0,
            bodyTimeout: 0,
            connect: { timeout: 10_000 },
          })
        : null
    this.dispatcher = engine.dispatcher ?? this.pool ?? failNoDispatcher()
  }

  stats(): { connections: number; free: number; pending: number } {
    const stats = this.pool?.stats
    return { connections: stats?.connected ?? 0, free: stats?.free ?? 0, pending: stats?.pending ?? 0 }
  }

  send(path: string, body: Buffer, ids: { callId: string; sessionId: string }, sink: UpstreamSink): UpstreamRequest {
    let controller: Dispatcher.DispatchController | null = null
    let settled = false
    const base = new URL(this.engine.url)
    this.dispatcher.dispatch(
      {
        origin: base.origin,
        path: `${base.pathname.replace(/\/$/, '')}${path}`,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'accept-encoding': 'identity',
          'x-request-id': ids.callId,
          'x-session-id': ids.sessionId,
          ...(this.engine.apiKey === null ? {} : { authorization: `Bearer ${this.engine.apiKey}` }),
        },
        body,
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      {
        onRequestStart(started) {
          controller = started
          if (settled) started.abort(new Error('aborted'))
        },
        onResponseStart(_controller, status, headers) {
          if (!settled && status >= 200) sink.head(status, headers)
        },
        onResponseData(_controller, chunk) {
          if (!settled) sink.chunk(chunk)
        },
        onResponseEnd() {
          if (settled) return
          settled = true
          sink.end()
        },
        onResponseError(_controller, cause) {
          if (settled) return
          settled = true
          sink.failed(upstreamFailure(cause))
        },
      },
    )
    return {
      pause: () => controller?.pause(),
      resume: () => controller?.resume(),
      abort: () => {
        if (settled) return
        settled = true
        controller?.abort(new Error('aborted'))
      },
    }
  }

  async close(): Promise<void> {
    await this.pool?.destroy()
  }
}

const connectFailures = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT'])

function upstreamFailure(cause: Error): PaddockError {
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
  const unreachable = connectFailures.has(code) || code === 'UND_ERR_CONNECT_TIMEOUT'
  return new PaddockError(
    unreachable ? 'ENGINE_UNREACHABLE' : 'ENGINE_DIED',
    unreachable
      ? `The engine cannot be reached: ${reason(cause)}.`
      : `The engine closed the connection before the answer was complete: ${reason(cause)}.`,
    { cause },
  )
}

function failNoDispatcher(): never {
  throw new PaddockError('ENGINE_UNREACHABLE', 'There is no connection pool for the engine.')
}
