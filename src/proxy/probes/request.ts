import { PaddockError } from '../../core/index.ts'
import type { EngineAsk } from '../engines/token-engine.ts'
import type { SeenWeights, Upstream, UpstreamIds, UpstreamRequest } from '../upstream.ts'

/** A whole reply. */
export interface ProbeReply {
  readonly status: number
  readonly body: Buffer
}

/** A question that samples: it waits while generation is paused, and is given up where the engine says nothing. */
export class ProbeRequest {
  /** Rejects with the engine's errors, `ENGINE_TIMEOUT`, and the signal's reason. */
  readonly reply: Promise<ProbeReply>
  private readonly request: UpstreamRequest
  private silence: NodeJS.Timeout

  constructor(
    upstream: Upstream,
    of: {
      readonly ask: EngineAsk
      readonly ids: UpstreamIds
      readonly stallMs: number
      readonly signal: AbortSignal
    },
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<ProbeReply>()
    const { ask, ids, signal, stallMs } = of
    const stalled = (): void => {
      this.request.abort()
      reject(new PaddockError('ENGINE_TIMEOUT', `The engine was silent for ${Math.round(stallMs / 1000)} s.`))
    }
    const heard = (): void => {
      this.silence.refresh()
    }
    const aborted = (): void => {
      this.request.abort()
      reject(signal.reason instanceof Error ? signal.reason : new Error('The probe was given up.'))
    }
    const chunks: Buffer[] = []
    let status = 502
    this.silence = setTimeout(stalled, stallMs)
    this.silence.unref()
    this.request = upstream.send(ask.path, ask.body, ids, {
      head: (told) => {
        status = told
        heard()
      },
      chunk: (bytes) => {
        heard()
        chunks.push(bytes)
      },
      end: () => resolve({ status, body: Buffer.concat(chunks) }),
      failed: reject,
    })
    signal.addEventListener('abort', aborted, { once: true })
    this.reply = promise.finally(() => {
      clearTimeout(this.silence)
      signal.removeEventListener('abort', aborted)
    })
    if (signal.aborted) aborted()
  }

  async weights(told: string | null): Promise<SeenWeights> {
    return this.request.weights(told)
  }
}
