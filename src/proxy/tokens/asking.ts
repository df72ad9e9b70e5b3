import { PaddockError } from '../../core/index.ts'
import type { EngineAsk } from '../engines/token-engine.ts'
import type { Upstream, UpstreamRequest } from '../upstream.ts'

/** A whole reply of an engine. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** Requests that belong to one call, one after another; what is aborted once stays aborted. */
export class Asking {
  private readonly upstream: Upstream
  private readonly ids: { readonly callId: string; readonly sessionId: string }
  private current: UpstreamRequest | null = null
  aborted = false

  constructor(upstream: Upstream, ids: { readonly callId: string; readonly sessionId: string }) {
    this.upstream = upstream
    this.ids = ids
  }

  abort(): void {
    this.aborted = true
    this.current?.abort()
  }

  /** Resolves with whatever status. Never settles once aborted. Rejects with `ENGINE_UNREACHABLE`, `ENGINE_DIED`. */
  ask({ path, body }: EngineAsk): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.aborted) return
      const chunks: Buffer[] = []
      let head: Pick<Reply, 'status' | 'headers'> = { status: 502, headers: {} }
      this.current = this.upstream.send(path, body, this.ids, {
        head: (status, headers) => {
          head = { status, headers }
        },
        chunk: (bytes) => chunks.push(bytes),
        end: () => resolve({ ...head, body: Buffer.concat(chunks) }),
        failed: reject,
      })
    })
  }

  /** As {@link ask}, and once more where a pure question met a server that failed. */
  async askAgain(ask: EngineAsk, times: number): Promise<Reply> {
    for (let left = times; ; left -= 1) {
      try {
        const reply = await this.ask(ask)
        if (reply.status < 500 || left <= 1) return reply
      } catch (cause) {
        if (left <= 1) throw cause
      }
    }
  }
}

/** The failure of a step between the client's request and its answer. */
export function stepFailed(step: string, reply: Reply | null): PaddockError {
  const said = reply === null ? '' : ` (${reply.status}: ${reply.body.subarray(0, 200).toString()})`
  return new PaddockError('ENGINE_ERROR', `The engine could not ${step}${said}.`)
}
