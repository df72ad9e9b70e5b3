import { type Clock, type Id, newId, PaddockError, systemClock } from '../../core/index.ts'
import type { LiveWeights, PauseElsewhere, PauseOrder, WeightsElsewhere } from '../../proxy/index.ts'
import type { NodeSessionView, Queue } from '../../trajectory/index.ts'
import type { NodesAnswered, ToldWeights } from './contract.ts'

export interface NodeWeightsParts {
  readonly queue: Pick<Queue, 'holders' | 'session'>
  /** Nothing that a session has under way is taken any more. */
  readonly passOver: (session: Id) => Promise<void>
  /** All that had to answer have, or are passed over. */
  readonly onAnswered?: (answered: NodesAnswered) => void
  readonly clock?: Clock
}

/** What a node says of what it was told. */
export interface NodeSaid {
  /** What it has done. */
  readonly mark: string
  /** Why it could not; null: it could. */
  readonly failed: { readonly code: string; readonly message: string } | null
}

/** A name in the queue holds the token's and the node's own, so that a session stays one token's over restarts. This process's own runners have none. */
export const nameSeparator = '/'

/** Where there are no nodes. */
export const nobodyAnswered: NodesAnswered = { answered: 0, slowest: null, passed: [] }

/** Of weights that no node has. */
export const noNodes: Pick<NodeWeights, 'pause' | 'update' | 'resume' | 'believe'> = {
  pause: () => Promise.resolve(nobodyAnswered),
  update: () => Promise.resolve(nobodyAnswered),
  resume: () => undefined,
  believe: () => undefined,
}

const hasLeft: NodeSaid = { mark: 'left', failed: null }

/** How often sessions that are waited for are looked at, whether they live. */
const lookMs = 200
/** A node that has done what it was told says so in this time. */
const graceMs = 5000

/**
 * What a coordinator tells its nodes of pauses and weights, and the barrier: whoever asks goes on when every node has answered
 * whose work would still be taken. A node whose lease is over, or that says nothing in time, is passed over: nothing that it had under
 * way is taken any more, because what it samples from then on might name the wrong weights.
 */
export class NodeWeights {
  readonly #parts: NodeWeightsParts
  readonly #clock: Clock
  /** Of this process: what nodes were told by another one is told anew. */
  readonly #epoch = newId()
  /** Of the barriers that are under way; nobody asks for more. */
  readonly #said = new Map<Id, NodeSaid>()
  #barriers = 0
  readonly #waiting = new Set<() => void>()
  #revision = 0
  #now: ToldWeights = { mark: this.#mark(), paused: null, version: null, adapter: null, cacheIsolated: true }
  /** Before nodes can ask nobody is waited for. */
  #isServed = false

  constructor(parts: NodeWeightsParts) {
    this.#parts = parts
    this.#clock = parts.clock ?? systemClock
  }

  get now(): ToldWeights {
    return this.#now
  }

  /** Nodes can ask from now on. */
  serve(): void {
    this.#isServed = true
  }

  /** Nobody is waited for any longer. */
  close(): void {
    this.#isServed = false
    this.#wake()
  }

  /** What a node has done, for all of its sessions. */
  hear(sessions: readonly Id[], said: NodeSaid): void {
    if (this.#barriers === 0) return
    for (const session of sessions) this.#said.set(session, said)
    this.#wake()
  }

  /** A session has ended in order: nothing of it is under way. */
  left(session: Id): void {
    this.hear([session], hasLeft)
  }

  /** Whether a node has done all that was told. */
  isCurrent(mark: string): boolean {
    return mark === this.#now.mark
  }

  /** What holds, once it is something else than the mark names, or the time is over. */
  async next(mark: string | null, waitMs: number, signal: AbortSignal): Promise<ToldWeights> {
    const ends = this.#clock.monotonic() + waitMs
    while (this.#now.mark === mark && !signal.aborted) {
      const left = ends - this.#clock.monotonic()
      if (left <= 0) break
      await this.#changed(left, signal)
    }
    return this.#now
  }

  /** Weights that are there already. */
  believe({ version, adapter }: LiveWeights): void {
    this.#tell({ version, adapter: adapter ?? null })
  }

  /** Resolves when nodes have paused. Throws `PAUSE_TIMED_OUT` where one could not. */
  pause(order: PauseOrder & PauseElsewhere): Promise<NodesAnswered> {
    const { mode, cache, timeoutMs, frozen } = order
    this.#tell({ paused: { mode, cache, timeoutMs, frozen } })
    return this.#answered(timeoutMs)
  }

  /** Resolves when nodes know the weights. */
  update({ version, adapter, cacheIsolated }: WeightsElsewhere, timeoutMs: number): Promise<NodesAnswered> {
    this.#tell({ version, adapter: adapter ?? null, cacheIsolated })
    return this.#answered(timeoutMs)
  }

  /** Nodes go on. */
  resume(): void {
    if (this.#now.paused !== null) this.#tell({ paused: null })
  }

  #tell(change: Partial<Omit<ToldWeights, 'mark'>>): void {
    this.#revision += 1
    this.#now = { ...this.#now, ...change, mark: this.#mark() }
    this.#wake()
  }

  #mark(): string {
    return `${this.#epoch}.${this.#revision}`
  }

  async #answered(timeoutMs: number): Promise<NodesAnswered> {
    this.#barriers += 1
    try {
      return await this.#barrier(timeoutMs)
    } finally {
      this.#barriers -= 1
      if (this.#barriers === 0) this.#said.clear()
    }
  }

  async #barrier(timeoutMs: number): Promise<NodesAnswered> {
    const { mark } = this.#now
    const startedAt = this.#clock.monotonic()
    const ends = startedAt + timeoutMs + graceMs
    const waited = new Map((await this.#holders()).map((session) => [session.id, session]))
    const passed: NodesAnswered['passed'][number][] = []
    let { slowest, answered } = nobodyAnswered
    while (waited.size > 0 && this.#isServed) {
      for (const { id, name } of waited.values()) {
        const said = this.#said.get(id)
        const node = nodeNameOf(name)
        if (said?.mark === mark) {
          if (said.failed !== null) throw failure(node, said.failed)
          slowest = { node, durationMs: Math.round(this.#clock.monotonic() - startedAt) }
          answered += 1
          waited.delete(id)
          continue
        }
        if (said === hasLeft) {
          waited.delete(id)
          continue
        }
        const isOver = (await this.#parts.queue.session(id))?.state === 'gone'
        if (!isOver && this.#clock.monotonic() < ends) continue
        waited.delete(id)
        await this.#parts.passOver(id)
        passed.push({ node, why: isOver ? 'lapsed' : 'silent' })
      }
      if (waited.size > 0) await this.#changed(lookMs)
    }
    const outcome = { answered, slowest, passed }
    if (answered + passed.length > 0) this.#parts.onAnswered?.(outcome)
    return outcome
  }

  /** Whose work would be taken, but for this process's own. */
  async #holders(): Promise<readonly NodeSessionView[]> {
    if (!this.#isServed) return []
    return (await this.#parts.queue.holders()).filter(({ name }) => name.includes(nameSeparator))
  }

  /** Resolves with the next change, or when the time is over. */
  #changed(limitMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const over = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(over)
        signal?.removeEventListener('abort', over)
        resolve()
      }
      const timer = setTimeout(over, limitMs)
      this.#waiting.add(over)
      signal?.addEventListener('abort', over, { once: true })
    })
  }

  #wake(): void {
    for (const over of this.#waiting) over()
  }
}

/** The node's own part of a session's name. */
export function nodeNameOf(name: string): string {
  return name.slice(name.indexOf(nameSeparator) + 1)
}

function failure(node: string, { code, message }: { readonly code: string; readonly message: string }): PaddockError {
  const known = code === 'PAUSE_TIMED_OUT' ? 'PAUSE_TIMED_OUT' : 'INTERNAL'
  return new PaddockError(known, `node ${node}: ${message}`, { data: { node } })
}
