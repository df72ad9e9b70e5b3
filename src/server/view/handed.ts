import type { Id } from '../../core/index.ts'
import { type RolloutTraining, RunTraining, type StoreReader } from '../../trajectory/index.ts'
import type { HandedSource } from './rollout-book.ts'

/** Rollouts that are asked about at most when a book is brought up to date. */
const mostAsked = 500

/** What the trainer of a run was handed and said. */
export class HandedOfRun extends RunTraining implements HandedSource {
  add(): void {
    // All of the run is read, whichever of its rollouts are there.
  }
}

/**
 * Which weights sampled the rollouts of a task, as the trainers of its runs were told: those that are not known yet are asked about again,
 * some at a time. What was handed out once stays as it is.
 */
export class HandedOfTask implements HandedSource {
  readonly #trainer: Pick<StoreReader['trainer'], 'handedLabels'>
  readonly #unknown = new Set<Id>()
  readonly #asked = new Set<Id>()
  readonly #labels = new Map<Id, readonly string[]>()
  #changed: Id[] = []
  #version = 0

  constructor(trainer: Pick<StoreReader['trainer'], 'handedLabels'>) {
    this.#trainer = trainer
  }

  get version(): number {
    return this.#version
  }

  add(ids: readonly Id[]): void {
    for (const id of ids) if (!this.#labels.has(id)) this.#unknown.add(id)
  }

  async advance(until: number): Promise<boolean> {
    do {
      const fresh = [...this.#unknown].filter((id) => !this.#asked.has(id))
      const some = (fresh.length > 0 ? fresh : [...this.#unknown]).slice(0, mostAsked)
      for (const [id, labels] of await this.#trainer.handedLabels(some)) {
        this.#labels.set(id, labels)
        this.#changed.push(id)
        this.#version += 1
      }
      for (const id of some) {
        this.#asked.add(id)
        // Those that were asked about stand behind those that were not.
        this.#unknown.delete(id)
        if (!this.#labels.has(id)) this.#unknown.add(id)
      }
      if (fresh.length <= some.length) return true
    } while (performance.now() < until)
    return false
  }

  changed(): Iterable<Id> {
    const changed = this.#changed
    this.#changed = []
    return changed
  }

  of(id: Id): RolloutTraining | null {
    const labels = this.#labels.get(id)
    return labels === undefined ? null : { labels, age: null, given: [] }
  }
}
