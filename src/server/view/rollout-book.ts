import type { Digest, Id } from '../../core/index.ts'
import type { RolloutFilter, RolloutTraining, RolloutView, StoreReader } from '../../trajectory/index.ts'
import { readRollout, type ReadRollout } from './rollout-lines.ts'

/** Rollouts that one query reads at most. */
const pageSize = 500
/** A book that was brought up to date this long ago is still fresh. */
const freshMs = 1000

/** How far the rollouts of a run or a task are read. */
export interface BookRead {
  readonly rollouts: readonly ReadRollout[]
  /** Of how many. */
  readonly of: number
  /** Counts each change of what is in the book. */
  readonly version: number
  /** False while more is to be read, of what a trainer was handed also. */
  readonly isWhole: boolean
}

/** What is known of rollouts as rows of a trainer. */
export interface HandedSource {
  /** Told of rollouts that came into the book. */
  add(ids: readonly Id[]): void
  /** Reads on, until all is read or the time is over. Resolves with whether all is read. */
  advance(until: number): Promise<boolean>
  /** Rollouts of which more is known since this was asked last. */
  changed(): Iterable<Id>
  of(id: Id): RolloutTraining | null
  /** Counts each change. */
  readonly version: number
}

type BookReader = Pick<StoreReader['catalogue'], 'rollouts' | 'mark' | 'touchedSince' | 'task'>

/** Whose rollouts a book holds. */
export type BookOf = Required<Pick<RolloutFilter, 'runId'>> | Required<Pick<RolloutFilter, 'taskDigest'>>

/**
 * What pages need of each rollout of a run or a task, kept by the reader and brought up to date by what came since: no query reads a
 * whole run, and a page of a large one is answered before all of it is read.
 */
export class RolloutBook {
  readonly #catalogue: BookReader
  readonly #whose: BookOf
  readonly #count: () => Promise<number>
  readonly #handed: HandedSource
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

  /** `count`: how many rollouts there are, asked once. */
  constructor(catalogue: BookReader, whose: BookOf, parts: { count: () => Promise<number>; handed: HandedSource }) {
    this.#catalogue = catalogue
    this.#whose = whose
    this.#count = parts.count
    this.#handed = parts.handed
  }

  /** Reads on, until all is read or the time is over. At least one page is read. Throws as the store does. */
  read(budgetMs: number): Promise<BookRead> {
    const done = this.#turn.then(() => this.#advance(performance.now() + budgetMs))
    this.#turn = done.catch(() => undefined)
    return done.then(() => ({
      rollouts: this.#all,
      of: Math.max(this.#of, this.#all.length),
      version: this.#version + this.#handed.version,
      isWhole: this.#isWhole,
    }))
  }

  async #advance(until: number): Promise<void> {
    if (this.#isWhole && performance.now() - this.#freshAt < freshMs) return
    const now = await this.#catalogue.mark()
    if (this.#mark === null) {
      // What comes while the rollouts are read for the first time stands behind the first mark.
      this.#mark = now
      this.#of = await this.#count()
    } else if (this.#isWhole) {
      const late = await this.#late(this.#mark)
      for (let from = 0; from < late.length; from += pageSize) {
        await this.#take(await this.#catalogue.rollouts({ ids: late.slice(from, from + pageSize) }))
      }
      this.#mark = now
    }
    this.#isWhole = false
    if (!(await this.#readOn(until))) return
    this.#isWhole = await this.#handed.advance(until)
    this.#takeHanded()
    this.#freshAt = performance.now()
  }

  /** Rollouts behind the last one. True where none is left. */
  async #readOn(until: number): Promise<boolean> {
    for (;;) {
      const last = this.#all.at(-1)
      const after = last === undefined ? {} : { after: last.line.id }
      const page = await this.#catalogue.rollouts({ ...this.#whose, limit: pageSize, ...after })
      await this.#take(page)
      if (page.length < pageSize) return true
      if (performance.now() > until) return false
    }
  }

  /** Rollouts in the book that may have changed: what came to ended ones, and some of those that go on. */
  async #late(mark: string): Promise<readonly Id[]> {
    const runId = 'runId' in this.#whose ? this.#whose.runId : null
    const touched = await this.#catalogue.touchedSince(mark, { runId })
    const going = [...this.#open].slice(0, pageSize)
    // Those that were looked at stand behind those that were not.
    for (const id of going) {
      this.#open.delete(id)
      this.#open.add(id)
    }
    return [...new Set([...touched, ...going])].filter((id) => this.#places.has(id))
  }

  async #take(views: readonly RolloutView[]): Promise<void> {
    this.#handed.add(views.map(({ id }) => id))
    for (const view of views) {
      const place = this.#places.get(view.id)
      const before = place === undefined ? undefined : this.#all[place]
      const one = readRollout(view, await this.#nameOf(view.taskDigest), this.#handed.of(view.id))
      if (view.end === null) this.#open.add(view.id)
      else this.#open.delete(view.id)
      if (before !== undefined && JSON.stringify(before.line) === JSON.stringify(one.line)) continue
      this.#version += 1
      this.#places.set(view.id, place ?? this.#all.length)
      this.#all[place ?? this.#all.length] = one
    }
  }

  #takeHanded(): void {
    for (const id of this.#handed.changed()) {
      const place = this.#places.get(id)
      const before = place === undefined ? undefined : this.#all[place]
      if (place === undefined || before === undefined) continue
      this.#version += 1
      this.#all[place] = { ...before, handed: this.#handed.of(id) }
    }
  }

  async #nameOf(digest: Digest): Promise<string> {
    const known = this.#names.get(digest)
    if (known !== undefined) return known
    const { name } = await this.#catalogue.task(digest)
    this.#names.set(digest, name)
    return name
  }
}
