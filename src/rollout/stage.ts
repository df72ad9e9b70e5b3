import { type Clock, type EventBody, PaddockError, type Stage } from '../core/index.ts'

/** How long work may go on after its signal before the stage ends without it. */
const graceMs = 20_000

export interface StageOptions {
  readonly stage: Stage
  /** Milliseconds; null: no budget. */
  readonly budgetMs: number | null
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly emit: (event: EventBody) => void
  readonly onPhase: (stage: Stage, phase: 'start' | 'end') => void
}

/**
 * Runs one stage: events at start and end, a signal that fires at the budget or at the caller's. Throws the caller's
 * reason on abort, `STAGE_TIMEOUT` at the budget, and ends soon after both even when the work ignores its signal.
 */
export async function inStage<T>(o: StageOptions, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { stage, budgetMs } = o
  const late = new AbortController()
  const timer =
    budgetMs === null
      ? null
      : setTimeout(() => {
          late.abort(new PaddockError('STAGE_TIMEOUT', `Stage ${stage} took longer than ${budgetMs} ms`))
        }, budgetMs)
  const signal = AbortSignal.any([o.signal, late.signal])
  const startedAt = o.clock.monotonic()
  o.onPhase(stage, 'start')
  o.emit({ kind: 'stage', stage, phase: 'start', durationMs: null })
  try {
    signal.throwIfAborted()
    return await abandoning(work(signal), signal)
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    if (timer !== null) clearTimeout(timer)
    o.emit({ kind: 'stage', stage, phase: 'end', durationMs: Math.round(o.clock.monotonic() - startedAt) })
    o.onPhase(stage, 'end')
  }
}

/** The work's own outcome, or the signal's reason when the work does not end soon after the signal. */
async function abandoning<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const given = Promise.withResolvers<never>()
  let timer: NodeJS.Timeout | null = null
  const onAbort = () => {
    timer = setTimeout(() => given.reject(signal.reason), graceMs)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, given.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
    if (timer !== null) clearTimeout(timer)
  }
}
