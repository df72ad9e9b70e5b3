import type { Catalogue, StoreChange, StoreChanges, TrainerBook } from '../contract/index.ts'

/** Who wants to know that something was written, in the process that owns the store. */
export class Changes implements StoreChanges {
  readonly #listeners = new Set<(change: StoreChange) => void>()

  on(listener: (change: StoreChange) => void): Disposable {
    this.#listeners.add(listener)
    return { [Symbol.dispose]: () => this.#listeners.delete(listener) }
  }

  tell(change: StoreChange): void {
    for (const listener of this.#listeners) listener(change)
  }
}

/** A catalogue that tells of rounds and rollouts once what was written is durable. */
export function telling(catalogue: Catalogue, changes: Changes): Catalogue {
  return withMethods(catalogue, {
    openRound: async (round) => {
      await catalogue.openRound(round)
      changes.tell({ kind: 'round', runId: round.runId })
    },
    settleRound: async (settled) => {
      const stands = await catalogue.settleRound(settled)
      changes.tell({ kind: 'round', runId: settled.runId })
      return stands
    },
    startRollout: async (id, at) => {
      await catalogue.startRollout(id, at)
      changes.tell({ kind: 'rollout', rolloutId: id })
    },
    endRollout: async (id, ...how) => {
      await catalogue.endRollout(id, ...how)
      changes.tell({ kind: 'rollout', rolloutId: id })
    },
    appendVerdict: async (verdict) => {
      await catalogue.appendVerdict(verdict)
      changes.tell({ kind: 'rollout', rolloutId: verdict.rolloutId })
    },
  })
}

/** A trainer's book that tells of runs that are closed, that somebody attached to, of which rounds are done or something was told. */
export function tellingBook(book: TrainerBook, changes: Changes): TrainerBook {
  return withMethods(book, {
    attach: async (runId, o) => {
      const attached = await book.attach(runId, o)
      changes.tell({ kind: 'run', runId })
      return attached
    },
    dispose: async (runId, o) => {
      const disposed = await book.dispose(runId, o)
      if (disposed.claimsDone.length > 0) changes.tell({ kind: 'run', runId })
      return disposed
    },
    tell: async (runId, kind, data) => {
      await book.tell(runId, kind, data)
      changes.tell({ kind: 'run', runId })
    },
    closeRun: async (runId) => {
      await book.closeRun(runId)
      changes.tell({ kind: 'run', runId })
    },
  })
}

/** An object with some methods of others; of any kind, an instance of a class too. */
function withMethods<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get: (_, name) => {
      if (name in methods) return Reflect.get(methods, name)
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
