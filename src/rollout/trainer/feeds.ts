import { type Id, KeyedTurns } from '../../core/index.ts'
import type { GroupRecord, Store } from '../../trajectory/index.ts'
import { groupSpec } from '../group/spec.ts'
import { type Drawn, drawsOf } from './feed.ts'
import type { OwnRuns } from './own-runs.ts'
import { trainerRunOf } from './run-config.ts'
import type { TrainerRuns } from './trainer-runs.ts'

export interface FeedsParts {
  readonly store: Pick<Store, 'catalogue' | 'trainer' | 'changes'>
  readonly runs: Pick<TrainerRuns, 'state' | 'submit'>
  readonly own: Pick<OwnRuns, 'tasks'>
  readonly hasEngine: () => boolean
  /** A group could not be asked for; it is asked for again when something changes. */
  onFailure(runId: Id, error: unknown): void
}

/**
 * Runs that ask for their own groups. Where a feed stands is told by the groups that there are: the one of its place `k` is
 * `<run>.feed.<k>`, and one that was lost by going back is asked for again as `<run>.feed.<k>.<incarnation>`.
 */
export class Feeds implements Disposable {
  readonly #parts: FeedsParts
  readonly #turns = new KeyedTurns<Id>()
  /** Runs without a feed are not looked at again. */
  readonly #without = new Set<Id>()
  readonly #listening: Disposable
  #closed = false

  constructor(parts: FeedsParts) {
    this.#parts = parts
    this.#listening = parts.store.changes.on((change) => {
      if (change.kind !== 'rollout') this.#soon(change.runId)
    })
  }

  /** Goes on with the feeds of earlier processes. */
  async resume(): Promise<void> {
    for (const { id } of await this.#parts.store.catalogue.unfinishedRuns('all')) this.#soon(id)
  }

  [Symbol.dispose](): void {
    this.#closed = true
    this.#listening[Symbol.dispose]()
  }

  #soon(runId: Id): void {
    if (this.#closed || this.#without.has(runId) || !this.#parts.hasEngine()) return
    this.#turns
      .take(runId, () => this.#advance(runId))
      .catch((error: unknown) => {
        if (!this.#closed) this.#parts.onFailure(runId, error)
      })
  }

  async #advance(runId: Id): Promise<void> {
    const { runs, own, store } = this.#parts
    const { feed } = trainerRunOf(await store.catalogue.run(runId))
    if (feed === undefined) {
      this.#without.add(runId)
      return
    }
    if (this.#closed) return
    const { asked, closed, incarnation, capacity } = await runs.state(runId)
    // Somebody has to be there who trains on it.
    if (closed || incarnation === null) return
    let room = (capacity.groups ?? asked.groupsPerStep ?? 0) - capacity.taken
    if (room <= 0) return
    const { again, next } = await this.#place(runId, incarnation)
    const draws = drawsOf(feed, await own.tasks(runId), asked.purpose === 'train')
    for (let k = 0; room > 0 && !this.#closed; k += 1) {
      const drawn = draws.next().value
      const id = k < next ? again.get(k) : feedGroup(runId, k)
      if (id === undefined) continue
      const { refused } = await runs.submit(runId, [groupOf(id, drawn)])
      if (refused.length > 0) return
      room -= 1
    }
  }

  /** Where the feed stands, and what of it has to be asked for once more, by place and as which group. */
  async #place(
    runId: Id,
    incarnation: number,
  ): Promise<{ readonly again: ReadonlyMap<number, Id>; readonly next: number }> {
    const { catalogue, trainer } = this.#parts.store
    const last = new Map<number, Id>()
    let newest: GroupRecord | null = null
    for (const group of await catalogue.groups(runId)) {
      const k = placeIn(runId, group.id)
      if (k === null) continue
      last.set(k, group.id)
      newest = group
    }
    const stale = new Set(await trainer.staleGroups(runId))
    const again = new Map<number, Id>()
    for (const [k, id] of last) if (stale.has(id)) again.set(k, `${feedGroup(runId, k)}.${incarnation}`)
    // A process that was killed between a group and its round left one that nobody works on.
    const k = newest === null ? null : placeIn(runId, newest.id)
    if (newest !== null && k !== null && (await catalogue.rounds(newest.id)).length === 0) again.set(k, newest.id)
    return { again, next: last.size === 0 ? 0 : Math.max(...last.keys()) + 1 }
  }
}

/** How many groups a feed has asked for, those that were lost counted once. */
export async function drawnOf(catalogue: Pick<Store['catalogue'], 'groups'>, runId: Id): Promise<number> {
  const places = (await catalogue.groups(runId)).map(({ id }) => placeIn(runId, id))
  return new Set(places.filter((place) => place !== null)).size
}

function groupOf(id: Id, { task, set, n, epoch }: Drawn) {
  const spec = groupSpec({ n, labels: { 'feed.set': set, 'feed.epoch': String(epoch) } })
  return { id, task: { digest: task.digest }, promptVariant: 'default', spec, priority: 0 }
}

function feedGroup(runId: Id, k: number): Id {
  return `${runId}.feed.${k}`
}

function placeIn(runId: Id, groupId: Id): number | null {
  const prefix = `${runId}.feed.`
  if (!groupId.startsWith(prefix)) return null
  const place = Number(groupId.slice(prefix.length).split('.')[0])
  return Number.isInteger(place) ? place : null
}
