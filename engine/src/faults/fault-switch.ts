import type { Fault, FaultKind, FaultOrder } from './orders.ts'

interface Standing {
  readonly order: FaultOrder
  seen: number
  struck: number
}

/** What a call looks like to the fault orders. */
export interface FaultSubject {
  /** Everything that may name the session: header and body values. */
  readonly sessions: readonly string[]
  readonly promptText: () => string
}

/** Faults that strike one call. */
export class CallFaults {
  /** Aborted when the switch that gave them is cleared, also where that happens before they strike. */
  readonly cleared: AbortSignal
  readonly #faults: readonly Fault[]

  constructor(faults: readonly Fault[], cleared: AbortSignal = new AbortController().signal) {
    this.#faults = faults
    this.cleared = cleared
  }

  /** The fault of a kind, if it strikes this call. */
  find<K extends FaultKind>(kind: K): Extract<Fault, { kind: K }> | undefined {
    return this.#faults.find((fault): fault is Extract<Fault, { kind: K }> => fault.kind === kind)
  }

  /** For the journal. */
  get all(): readonly Fault[] {
    return this.#faults
  }
}

/** The standing fault orders. Each call takes what is meant for it; counts run down in order of arrival. */
export class FaultSwitch {
  #standing: Standing[] = []
  #cleared = new AbortController()

  add(order: FaultOrder): void {
    this.#standing.push({ order, seen: 0, struck: 0 })
  }

  clear(): void {
    this.#standing = []
    this.#cleared.abort()
    this.#cleared = new AbortController()
  }

  list(): { order: FaultOrder; seen: number; struck: number }[] {
    return this.#standing.map((standing) => ({ ...standing }))
  }

  /**
   * Counts the call against every order that matches it and returns those that strike. Requests that turn ids into
   * messages have faults of their own.
   */
  take(subject: FaultSubject, asked: 'generation' | 'derender' = 'generation'): CallFaults {
    if (this.#standing.length === 0) return new CallFaults([])
    const striking: Fault[] = []
    for (const standing of this.#standing) {
      const { order } = standing
      if ((order.fault.kind === 'derender_fails') !== (asked === 'derender')) continue
      if (!matches(order, subject)) continue
      standing.seen++
      const usedUp = order.count > 0 && standing.struck >= order.count
      if (usedUp || (order.nth !== undefined && standing.seen !== order.nth)) continue
      standing.struck++
      striking.push(order.fault)
    }
    return new CallFaults(striking, this.#cleared.signal)
  }
}

function matches(order: FaultOrder, subject: FaultSubject): boolean {
  const { session, instruction } = order
  if (session !== undefined && !subject.sessions.some((value) => value.includes(session))) return false
  return instruction === undefined || subject.promptText().includes(instruction.trim())
}
