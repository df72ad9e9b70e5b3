import type { Id } from '../../core/index.ts'

/** Who asks for a place to verify. */
export interface VerifyPlaceRequest {
  /** Earlier goes first. */
  readonly order: number
  readonly groupId: Id
  /** When the group settles without it, counted from its first member; null: never. */
  readonly deadlineMs: number | null
}

interface Holder {
  readonly groupId: Id
  /** It has had its place for so long that another one may begin. */
  overdue: boolean
}

interface WaitingVerification extends VerifyPlaceRequest {
  readonly admitted: (place: Disposable) => void
}

/** Part of a group's deadline after which a verification no longer keeps others waiting. */
const patience = 1 / 4

/**
 * Places for verifications: `limit` at once, in the order of the members. A verification of a group with a deadline that holds its place for a
 * quarter of that lets one more begin, of the group that holds fewest, up to twice the limit: a stuck verifier costs its own member
 * alone.
 */
export class VerifyPlaces {
  readonly #limit: number
  readonly #held = new Set<Holder>()
  #waiting: readonly WaitingVerification[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Resolves with a place; disposing it lets the next one in. Rejects with the signal's reason on abort. */
  async enter(signal: AbortSignal, asked: VerifyPlaceRequest): Promise<Disposable> {
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<Disposable>()
    const waiter = { ...asked, admitted: resolve }
    const onAbort = (): void => {
      this.#waiting = this.#waiting.filter((one) => one !== waiter)
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    this.#waiting = [...this.#waiting, waiter].toSorted((a, b) => a.order - b.order)
    this.#admit()
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  #admit(): void {
    for (;;) {
      const next = this.#next()
      if (next === undefined) return
      this.#waiting = this.#waiting.filter((one) => one !== next)
      next.admitted(this.#hold(next))
    }
  }

  #next(): WaitingVerification | undefined {
    if (this.#held.size < this.#limit) return this.#waiting[0]
    const overdue = [...this.#held].filter((holder) => holder.overdue).length
    if (this.#held.size >= this.#limit + Math.min(overdue, this.#limit)) return undefined
    const holds = (groupId: Id): number => [...this.#held].filter((holder) => holder.groupId === groupId).length
    return this.#waiting.toSorted((a, b) => holds(a.groupId) - holds(b.groupId))[0]
  }

  #hold({ groupId, deadlineMs }: WaitingVerification): Disposable {
    const holder: Holder = { groupId, overdue: false }
    this.#held.add(holder)
    const becomesOverdue = (): void => {
      holder.overdue = true
      this.#admit()
    }
    const timer = deadlineMs === null ? null : setTimeout(becomesOverdue, deadlineMs * patience)
    return {
      [Symbol.dispose]: () => {
        if (!this.#held.delete(holder)) return
        if (timer !== null) clearTimeout(timer)
        this.#admit()
      },
    }
  }
}
