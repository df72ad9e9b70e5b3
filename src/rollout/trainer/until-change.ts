import type { Clock } from '../../core/index.ts'
import type { StoreChange, StoreChanges } from '../../trajectory/index.ts'

export interface Waiting {
  readonly changes: StoreChanges
  readonly clock: Clock
  readonly waitMs: number
  readonly signal: AbortSignal
  /** Whether a change is worth another look. */
  concerns(change: StoreChange): boolean
  /** Milliseconds until something is due that no write tells; null: nothing is. */
  readonly next?: () => Promise<number | null>
}

/**
 * Looks now, and again whenever something is written or due, until `look` finds something or the time is over. Null where
 * it found nothing. Nothing that is written between two looks is missed.
 */
export async function untilChange<T>(waiting: Waiting, look: () => Promise<T | null>): Promise<T | null> {
  const { clock, waitMs, signal } = waiting
  const ends = clock.now() + waitMs
  let wake: (() => void) | null = null
  let changed = false
  using _listening = waiting.changes.on((change) => {
    if (!waiting.concerns(change)) return
    changed = true
    wake?.()
  })
  for (;;) {
    changed = false
    const found = await look()
    if (found !== null) return found
    const left = ends - clock.now()
    if (left <= 0 || signal.aborted) return null
    const due = (await waiting.next?.()) ?? null
    await new Promise<void>((resolve) => {
      const over = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', over)
        wake = null
        resolve()
      }
      const timer = setTimeout(over, Math.min(left, due === null ? left : due + 1))
      wake = over
      signal.addEventListener('abort', over, { once: true })
      if (changed || signal.aborted) over()
    })
  }
}
