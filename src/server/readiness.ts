import { setTimeout } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import { type Clock, systemClock } from '../core/index.ts'
import type { ControlParts } from './contract.ts'

/** Anybody may ask, so that what the engine is asked does not grow with who asks. */
const freshMs = 1000
/** Calls wait longer for a catalogue that restarts; who asks whether it answers does not. */
const answerMs = 3000

/** `GET /readyz`. */
export interface Readiness {
  readonly status: 'ready' | 'not_ready'
  /** The catalogue answers, and the process is not stopping. */
  readonly store: 'open' | 'closed'
  /** A replica's health route answers now. */
  readonly engine: 'reachable' | 'unreachable'
  /** Only with an object store: its blobs are there, some wait in the data directory while it is away, or no more may. */
  readonly blobs?: 'stored' | 'waiting' | 'full'
}

/** Answers 200 where harnesses can be served, else 503. It says no address and no reason: `GET /engine` does, to those who may ask. */
export function readiness(
  { reader, proxy, blobsState }: Pick<ControlParts, 'reader' | 'proxy' | 'blobsState'>,
  clock: Clock = systemClock,
): RequestHandler {
  let last: { readonly at: number; readonly answer: Promise<Readiness> } | null = null
  const look = async (): Promise<Readiness> => {
    const [store, engine] = await Promise.all([
      Promise.race([
        reader.catalogue.runs(1).then(
          () => 'open' as const,
          () => 'closed' as const,
        ),
        setTimeout(answerMs, 'closed' as const, { ref: false }),
      ]),
      proxy.engineHealth(),
    ])
    const reached = engine.some(({ ill }) => ill === null)
    const stand = blobsState?.() ?? null
    return {
      status: store === 'open' && reached && stand?.full !== true ? 'ready' : 'not_ready',
      store,
      engine: reached ? 'reachable' : 'unreachable',
      ...(stand === null ? {} : { blobs: stand.full ? 'full' : stand.away === null ? 'stored' : 'waiting' }),
    }
  }
  return async (_request, response) => {
    const now = clock.monotonic()
    if (last === null || now - last.at >= freshMs) last = { at: now, answer: look() }
    const answer = await last.answer
    response.status(answer.status === 'ready' ? 200 : 503).json(answer)
  }
}
