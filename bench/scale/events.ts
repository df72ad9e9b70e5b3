/** What a simulation is made of: a seeded source of chance, events in the order of their times, and stations that serve. */

export interface Chance {
  /** In [0, 1). */
  uniform(): number
  exponential(mean: number): number
  /** Of this mean; `sigma` is that of its logarithm: 1 is a heavy tail, 0 always the mean. */
  lognormal(mean: number, sigma: number): number
}

/** The same numbers for the same seed (mulberry32). */
export function chanceFrom(seed: number): Chance {
  let state = seed >>> 0
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    uniform,
    exponential: (mean) => -mean * Math.log(1 - uniform()),
    lognormal: (mean, sigma) => {
      const normal = Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
      return mean * Math.exp(sigma * normal - (sigma * sigma) / 2)
    },
  }
}

interface Due {
  readonly at: number
  /** Of two at the same time the one that was asked for first comes first. */
  readonly order: number
  readonly work: () => void
}

/** Time, in seconds, that goes on from event to event. */
export class Timeline {
  now = 0
  readonly #heap: Due[] = []
  #asked = 0

  after(seconds: number, work: () => void): void {
    this.#asked += 1
    const heap = this.#heap
    heap.push({ at: this.now + seconds, order: this.#asked, work })
    for (let at = heap.length - 1; at > 0;) {
      const above = (at - 1) >> 1
      if (!this.#isBefore(at, above)) break
      this.#swap(at, above)
      at = above
    }
  }

  /** Until this time, or until nothing is due. */
  run(until: number): void {
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      this.now = next.at
      next.work()
    }
    this.now = until
  }

  #next(until: number): Due | undefined {
    const heap = this.#heap
    const first = heap[0]
    if (first === undefined || first.at > until) return undefined
    this.#swap(0, heap.length - 1)
    heap.pop()
    for (let at = 0; ;) {
      let least = at
      for (const below of [2 * at + 1, 2 * at + 2])
        if (below < heap.length && this.#isBefore(below, least)) least = below
      if (least === at) return first
      this.#swap(at, least)
      at = least
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]]
    if (one === undefined || other === undefined) return false
    return one.at < other.at || (one.at === other.at && one.order < other.order)
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#heap[a], this.#heap[b]]
    if (one === undefined || other === undefined) return
    this.#heap[a] = other
    this.#heap[b] = one
  }
}

/** Serves in the order of arrival, with so many servers. */
export class Station {
  readonly #timeline: Timeline
  readonly #freeAt: number[]
  #busy = 0
  readonly waits: number[] = []

  constructor(timeline: Timeline, servers = 1) {
    this.#timeline = timeline
    this.#freeAt = Array.from({ length: servers }, () => 0)
  }

  serve(seconds: number, done: () => void): void {
    const { now } = this.#timeline
    let first = 0
    for (let at = 1; at < this.#freeAt.length; at += 1) {
      if ((this.#freeAt[at] ?? 0) < (this.#freeAt[first] ?? 0)) first = at
    }
    const begins = Math.max(now, this.#freeAt[first] ?? 0)
    this.#freeAt[first] = begins + seconds
    this.#busy += seconds
    this.waits.push(begins - now)
    this.#timeline.after(begins + seconds - now, done)
  }

  /** Of its servers, since {@link forget}: above 1 is work that it was given and has not done. */
  utilisation(seconds: number): number {
    return this.#busy / seconds / this.#freeAt.length
  }

  /** What was measured until now does not count. */
  forget(): void {
    this.#busy = 0
    this.waits.length = 0
  }
}

/** One holder at a time, the others in the order of arrival; those who go ahead before all that do not. */
export class Turn {
  readonly #ahead: ((leave: () => void) => void)[] = []
  readonly #waiting: ((leave: () => void) => void)[] = []
  readonly #timeline: Timeline
  #takenSince: number | null = null
  #busy = 0
  #head = 0

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  /** Share of these seconds, since {@link forget}, in which somebody had it. */
  utilisation(seconds: number): number {
    return (this.#busy + this.#heldFor) / seconds
  }

  forget(): void {
    this.#busy = -this.#heldFor
  }

  take(work: (leave: () => void) => void, o: { readonly ahead: boolean } = { ahead: false }): void {
    if (o.ahead) this.#ahead.push(work)
    else this.#waiting.push(work)
    if (this.#takenSince === null) this.#go()
  }

  get #heldFor(): number {
    return this.#takenSince === null ? 0 : this.#timeline.now - this.#takenSince
  }

  #go(): void {
    const ahead = this.#ahead.shift()
    const next = ahead ?? this.#waiting[this.#head]
    this.#busy += this.#heldFor
    this.#takenSince = next === undefined ? null : this.#timeline.now
    if (next === undefined) return
    if (ahead === undefined) this.#head += 1
    if (this.#head > 10_000) {
      this.#waiting.splice(0, this.#head)
      this.#head = 0
    }
    next(() => this.#go())
  }
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).toSorted()
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
