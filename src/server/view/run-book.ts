import type { Digest, Id } from '../../core/index.ts'
import type { RolloutView, StoreReader } from '../../trajectory/index.ts'
import { handedOf, readRollout, type ReadRollout } from './rollout-lines.ts'

/** Rollouts that one query reads at most. */
const pageSize = 500
/** A book that was brought up to date this long ago is still fresh. */
const freshMs = 1000

/** How far a run is read. */
export interface RunRead {
  readonly rollouts: readonly ReadRollout[]
  /** Of how many. */
  readonly of: number
  /** Counts each change of what is in the book. */
  readonly version: number
}

/**
 * What pages need of each rollout of a run, kept by the reader and brought up to date by what came since: no query reads a
 * whole run, and a page of a large one is answered before all of it is read.
 */
export class RunBook {
  readonly #reader: Pick<StoreReader, 'catalogue' | 'trainer'>
  readonly #runId: Id
  readonly #all: ReadRollout[] = []
  readonly #places = new Map<Id, number>()
  readonly #open = new Set<Id>()
  readonly #names = new Map<Digest, string>()
  #mark: string | null = null
  #isWhole = false
  #of = 0
  #version = 0
  #freshAt = -Infinity
  #turn: Promise<unknown> = Promise.resolve()

  constructor(reader: Pick<StoreReader, 'catalogue' | 'trainer'>, runId: Id) {
    this.#reader = reader
    this.#runId = runId
  }

  /** Reads on, until all is read or the time is over. At least one page is read. Throws as the store does. */
  read(budgetMs: number): Promise<RunRead> {
    const done = this.#turn.then(() => this.#advance(performance.now() + budgetMs))
    this.#turn = done.catch(() => undefined)
    return done.then(() => ({ rollouts: this.#all, of: Math.max(this.#of, this.#all.length), version: this.#version }))
  }

  async #advance(until: number): Promise<void> {
    if (this.#isWhole && performance.now() - this.#freshAt < freshMs) return
    const { catalogue } = this.#reader
    const now = await catalogue.mark()
    // What comes while the run is read for the first time stands behind the first mark.
    this.#mark ??= now
    if (this.#isWhole) {
      const late = await this.#late(this.#mark)
      for (let from = 0; from < late.length; from += pageSize) {
        await this.#take(await catalogue.rollouts({ ids: late.slice(from, from + pageSize) }))
      }
      this.#mark = now
    }
    this.#of = await catalogue.countRollouts({ runId: this.#runId })
    this.#isWhole = false
    while (!this.#isWhole) {
      const last = this.#all.at(-1)
      const after = last === undefined ? {} : { after: last.line.id }
      const page = await catalogue.rollouts({ runId: this.#runId, limit: pageSize, ...after })
      await this.#take(page)
      this.#isWhole = page.length < pageSize
      if (!this.#isWhole && performance.now() > until) return
    }
    await this.#takeHanded()
    this.#freshAt = performance.now()
  }

  /** Rollouts in the book that may have changed: what came to ended ones, and some of those that go on. */
  async #late(mark: string): Promise<readonly Id[]> {
    const touched = await this.#reader.catalogue.touchedSince(mark, { runId: this.#runId })
    const going = [...this.#open].slice(0, pageSize)
    // Those that were looked at stand behind those that were not.
    for (const id of going) {
      this.#open.delete(id)
      this.#open.add(id)
    }
    return [...new Set([...touched, ...going])].filter((id) => this.#places.has(id))
  }

  async #take(views: readonly RolloutView[]): Promise<void> {
    for (const view of views) {
      const place = this.#places.get(view.id)
      const before = place === undefined ? undefined : this.#all[place]
      const one = readRollout(view, await this.#nameOf(view.taskDigest), before?.handed ?? null)
      if (view.end === null) this.#open.add(view.id)
      else this.#open.delete(view.id)
      if (before !== undefined && JSON.stringify(before.line) === JSON.stringify(one.line)) continue
      this.#version += 1
      this.#places.set(view.id, place ?? this.#all.length)
      this.#all[place ?? this.#all.length] = one
    }
  }

  async #takeHanded(): Promise<void> {
    for (const [id, handed] of await handedOf(this.#reader.trainer, this.#runId)) {
      const place = this.#places.get(id)
      const before = place === undefined ? undefined : this.#all[place]
      if (place === undefined || before === undefined || sameHanded(before.handed, handed)) continue
      this.#version += 1
      this.#all[place] = { ...before, handed }
    }
  }

  async #nameOf(digest: Digest): Promise<string> {
    const known = this.#names.get(digest)
    if (known !== undefined) return known
    const { name } = await this.#reader.catalogue.task(digest)
    this.#names.set(digest, name)
    return name
  }
}

function sameHanded(a: ReadRollout['handed'], b: NonNullable<ReadRollout['handed']>): boolean {
  return (
    a !== null &&
    a.age === b.age &&
    a.labels.join() === b.labels.join() &&
    a.steps.size === b.steps.size &&
    [...a.steps].every((step) => b.steps.has(step))
  )
}
