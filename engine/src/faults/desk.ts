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
  readonly #faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    this.#faults = faults
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
export class FaultDesk {
  #standing: Standing[] = []

  add(order: FaultOrder): void {
    this.#standing.push({ order, seen: 0, struck: 0 })
  }

  clear(): void {
    this.#standing = []
  }

  list(): { order: FaultOrder; seen: number; struck: number }[] {
    return this.#standing.map((standing) => ({ ...standing }))
  }

  /** Counts the call against every order that matches it and returns those that strike. */
  take(subject: FaultSubject): CallFaults {
    if (this.#standing.length === 0) return new CallFaults([])
    const striking: Fault[] = []
    for (const standing of this.#standing) {
      const { order } = standing
      if (!matches(order, subject)) continue
      standing.seen++
      const usedUp = order.count > 0 && standing.struck >= order.count
      if (usedUp || (order.nth !== undefined && standing.seen !== order.nth)) continue
      standing.struck++
      striking.push(order.fault)
    }
    return new CallFaults(striking)
  }
}

function matches(order: FaultOrder, subject: FaultSubject): boolean {
  const { session, instruction } = order
  if (session !== undefined && !subject.sessions.some((value) => value.includes(session))) return false
  return instruction === undefined || subject.promptText().includes(instruction.trim())
}
