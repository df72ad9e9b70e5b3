import { type Digest, type Id, isPaddockError, KeyedTurns, type Task } from '../../core/index.ts'
import type { GroupRecord, RunEvent, Store } from '../../trajectory/index.ts'
import { groupSpec } from '../group/spec.ts'
import { chosenTask, type Feed, type FeedPlace, type FindSelector, mostFailedRounds, placesOf } from './feed.ts'
import type { OwnRuns } from './own-runs.ts'
import { trainerRunOf } from './run-config.ts'
import type { TrainerRuns, TrainerRunState } from './trainer-runs.ts'

export interface FeedsParts {
  readonly store: Pick<Store, 'catalogue' | 'trainer' | 'changes'>
  readonly runs: Pick<TrainerRuns, 'state' | 'submit'>
  readonly own: Pick<OwnRuns, 'tasks'>
  readonly findSelector: FindSelector
  readonly hasEngine: () => boolean
  /** A group could not be asked for; it is asked for again when something changes. */
  onFailure(runId: Id, error: unknown): void
}

/** Where a feed stands. */
interface Standing {
  /** What has to be asked for once more, by place. */
  readonly again: ReadonlyMap<number, { readonly id: Id; readonly task: Digest }>
  readonly next: number
  /** How often each task was asked for; what was lost and asked for again is counted once. */
  readonly asked: Map<Digest, number>
}

/**
 * Runs that ask for their own groups. Where a feed stands is told by the groups that there are: the one of its place `k` is
 * `<run>.feed.<k>`, and one that was lost by going back is asked for again as `<run>.feed.<k>.<incarnation>`. What a selector
 * chooses on is told by them and by what is remembered of tasks, so it goes back with them.
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
    const { runs, store } = this.#parts
    const { feed } = trainerRunOf(await store.catalogue.run(runId))
    if (feed === undefined) {
      this.#without.add(runId)
      return
    }
    if (this.#closed) return
    const state = await runs.state(runId)
    const { closed, incarnation, feedStop, nullStop } = state
    // Somebody has to be there who trains on it.
    if (closed || incarnation === null || feedStop !== null || nullStop !== null) return
    const { maxFailed = mostFailedRounds } = feed
    const last = await store.trainer.lastSettled(runId, maxFailed)
    if (last.length === maxFailed && last.every((one) => one === 'failed')) {
      const message = `the last ${maxFailed} rounds of the run failed`
      await this.#stop(runId, { incarnation, reason: 'groups_failed', message })
      return
    }
    try {
      await this.#ask(runId, feed, { ...state, incarnation })
    } catch (error) {
      if (!isPaddockError(error) || !ofSelectors.has(error.code)) throw error
      await this.#stop(runId, { incarnation, reason: 'selector_failed', code: error.code, message: error.message })
    }
  }

  /** Asks for as many groups as there is room for. */
  async #ask(
    runId: Id,
    feed: Feed,
    { asked, incarnation, capacity, version }: TrainerRunState & { readonly incarnation: number },
  ): Promise<void> {
    const { runs, own } = this.#parts
    let room = (capacity.groups ?? asked.groupsPerStep ?? 0) - capacity.taken
    if (room <= 0) return
    const standing = await this.#standing(runId, incarnation)
    const places = placesOf(feed, await own.tasks(runId), asked.purpose === 'train')
    for (let k = 0; room > 0 && !this.#closed; k += 1) {
      const place = places.next().value
      const lost = standing.again.get(k)
      if (k < standing.next && lost === undefined) continue
      const digest =
        lost?.task ??
        (place.turn?.task ?? (await this.#choice(runId, place, `${feed.seed}\0choose\0${k}`, { version, standing })))
          .digest
      const { refused } = await runs.submit(runId, [groupOf(lost?.id ?? feedGroup(runId, k), place, digest)])
      if (refused.length > 0) return
      if (lost === undefined) standing.asked.set(digest, (standing.asked.get(digest) ?? 0) + 1)
      room -= 1
    }
  }

  async #choice(
    runId: Id,
    place: FeedPlace,
    words: string,
    { version, standing }: { readonly version: TrainerRunState['version']; readonly standing: Standing },
  ): Promise<Task> {
    const { name = '', window = null } = place.set.selector ?? {}
    const selector = await this.#parts.findSelector(name, 'choose')
    const live = version?.ordinal ?? 0
    const memory = await this.#parts.store.catalogue.memory({
      runId,
      variant,
      ...(window === null ? {} : { versions: { min: live - window + 1, max: null } }),
      by: [],
      sort: 'attempts',
      descending: false,
      limit: mostTasks,
      after: null,
    })
    return chosenTask(selector, place, { memory, asked: standing.asked, words })
  }

  /** The trainer is told; nothing more is asked for until it attaches again. */
  async #stop(runId: Id, data: RunEvent['data'] & { readonly incarnation: number }): Promise<void> {
    await this.#parts.store.trainer.tell(runId, 'feed_stopped', data)
  }

  async #standing(runId: Id, incarnation: number): Promise<Standing> {
    const { catalogue, trainer } = this.#parts.store
    const last = new Map<number, GroupRecord>()
    let newest: GroupRecord | null = null
    for (const group of await catalogue.groups(runId)) {
      const k = placeIn(runId, group.id)
      if (k === null) continue
      last.set(k, group)
      newest = group
    }
    const asked = new Map<Digest, number>()
    for (const { taskDigest } of last.values()) asked.set(taskDigest, (asked.get(taskDigest) ?? 0) + 1)
    const stale = new Set(await trainer.staleGroups(runId))
    const again = new Map<number, { readonly id: Id; readonly task: Digest }>()
    for (const [k, { id, taskDigest }] of last) {
      if (stale.has(id)) again.set(k, { id: `${feedGroup(runId, k)}.${incarnation}`, task: taskDigest })
    }
    // A process that was killed between a group and its round left one that nobody works on.
    const k = newest === null ? null : placeIn(runId, newest.id)
    if (newest !== null && k !== null && (await catalogue.rounds(newest.id)).length === 0) {
      again.set(k, { id: newest.id, task: newest.taskDigest })
    }
    return { again, next: last.size === 0 ? 0 : Math.max(...last.keys()) + 1, asked }
  }
}

/** What keeps a feed from choosing, now and whenever it is asked again. */
const ofSelectors: ReadonlySet<string> = new Set(['SELECTOR_INVALID', 'SELECTOR_UNKNOWN', 'CONFIG_INVALID'])

/** Of the prompt, of all groups of a feed. */
const variant = 'default'

/** Lines of memory that a selector is given. */
const mostTasks = 1_000_000

/** How many groups a feed has asked for, those that were lost counted once. */
export async function drawnOf(catalogue: Pick<Store['catalogue'], 'groups'>, runId: Id): Promise<number> {
  const places = (await catalogue.groups(runId)).map(({ id }) => placeIn(runId, id))
  return new Set(places.filter((place) => place !== null)).size
}

function groupOf(id: Id, { set, turn }: FeedPlace, digest: Digest) {
  const by = turn === null ? { 'feed.selector': set.selector?.name ?? '' } : { 'feed.epoch': String(turn.epoch) }
  const spec = groupSpec({ n: set.n, labels: { 'feed.set': set.set, ...by } })
  return { id, task: { digest }, promptVariant: variant, spec, priority: 0 }
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
