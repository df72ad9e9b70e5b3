import { type Digest, PaddockError, sha256, type Task } from '../../core/index.ts'
import {
  type CandidateTask,
  chance,
  chooseTasks,
  heldOutSplits,
  type MemoryPage,
  seeded,
  type Selector,
  selectorOptions,
} from '../../trajectory/index.ts'

/** What a run asks for by itself. JSON. */
export interface Feed {
  /** Same seed, sets and tasks: same order. */
  readonly seed: number
  readonly sets: readonly FeedSet[]
  /** Rounds that fail one after the other at which it stops; left out: {@link mostFailedRounds}. */
  readonly maxFailed?: number
}

export interface FeedSet {
  /** A split of the run's tasks; `*`: all that may be trained. */
  readonly set: string
  /** Share of the groups, against the weights of the others. */
  readonly weight: number
  /** Members of each group. */
  readonly n: number
  /** What chooses among its tasks; left out: each of them once in an epoch. */
  readonly selector?: FeedSelector
}

/** A selector of tasks as a run names it. JSON. */
export interface FeedSelector {
  readonly name: string
  readonly options: Readonly<Record<string, number>>
  /** How many weights back it looks, those that are live among them; null: all. */
  readonly window: number | null
}

/** Where nothing else is said. */
export const mostFailedRounds = 8

/** One place of a feed. */
export interface FeedPlace {
  readonly set: FeedSet
  /** What it is asked for of. */
  readonly tasks: readonly Task[]
  /** Whose turn it is, and how many times the whole set was asked for before; null: a selector chooses. */
  readonly turn: { readonly task: Task; readonly epoch: number } | null
}

/** The tasks of a set. `trains`: held-out ones are not among `*`. */
export function tasksOf({ set }: Pick<FeedSet, 'set'>, tasks: readonly Task[], trains: boolean): readonly Task[] {
  if (set === '*') return tasks.filter(({ split }) => !trains || !heldOutSplits.has(split))
  return tasks.filter(({ split }) => split === set)
}

/**
 * All places of a feed, without an end: by chance as the weights say, and within a set in an order that is new in each epoch. Each
 * place is a pure function of seed, sets and tasks, so that nothing but the place has to be remembered. No set may be empty.
 */
export function* placesOf({ seed, sets }: Feed, tasks: readonly Task[], trains: boolean): Generator<FeedPlace, never> {
  const total = sets.reduce((sum, { weight }) => sum + weight, 0)
  const pools = sets.map((set) => ({
    set,
    tasks: tasksOf(set, tasks, trains),
    taken: 0,
    order: [] as readonly Task[],
  }))
  for (let place = 0; ; place += 1) {
    let left = chance(`${seed}\0${place}`) * total
    let pool = pools[0]
    for (const one of pools) {
      pool = one
      left -= one.set.weight
      if (left < 0) break
    }
    if (pool === undefined || pool.tasks.length === 0) throw new Error('a feed has sets, and they have tasks')
    const { set } = pool
    if (set.selector !== undefined) {
      yield { set, tasks: pool.tasks, turn: null }
      continue
    }
    const epoch = Math.floor(pool.taken / pool.tasks.length)
    const at = pool.taken % pool.tasks.length
    if (at === 0) pool.order = permuted(pool.tasks, `${seed}\0${set.set}\0${epoch}`)
    pool.taken += 1
    const task = pool.order[at]
    if (task !== undefined) yield { set, tasks: pool.tasks, turn: { task, epoch } }
  }
}

/**
 * The task that a selector chooses for a place, of what is remembered and how often each was asked for. The same place, seed,
 * memory and counts give the same task. Throws `SELECTOR_INVALID`.
 */
export function chosenTask(
  selector: Selector,
  { tasks, set }: FeedPlace,
  known: { readonly memory: MemoryPage; readonly asked: ReadonlyMap<Digest, number>; readonly words: string },
): Task {
  const candidates = candidatesOf(tasks, known.memory, known.asked)
  const options = selectorOptions(selector, set.selector?.options ?? {})
  const choice = { tasks: candidates, count: 1, options, random: seeded(known.words) }
  const [digest] = chooseTasks(selector, choice)
  const task = tasks.find((one) => one.digest === digest)
  if (task === undefined) throw new Error('chooseTasks gives one of the tasks')
  return task
}

/** Tasks with what is remembered of each, by digest: one memory line a task at most. */
export function candidatesOf(
  tasks: readonly Task[],
  memory: MemoryPage,
  asked: ReadonlyMap<Digest, number>,
): readonly CandidateTask[] {
  const lines = new Map(memory.tasks.map((line) => [line.taskDigest, line]))
  return tasks
    .map((task): CandidateTask => {
      const line = lines.get(task.digest)
      return {
        task,
        asked: asked.get(task.digest) ?? 0,
        attempts: line?.attempts ?? 0,
        numbers: line?.numbers ?? 0,
        passed: line?.passed ?? 0,
        meanReward: line?.meanReward ?? null,
        nulls: line?.nulls ?? 0,
        infra: line?.infra ?? 0,
        used: line?.uses.used ?? 0,
      }
    })
    .toSorted((a, b) => (a.task.digest < b.task.digest ? -1 : 1))
}

/** Throws `SELECTOR_UNKNOWN`, `SELECTOR_INVALID`. */
export type FindSelector = (name: string, part: 'select' | 'choose') => Promise<Selector>

/**
 * Throws `CONFIG_INVALID` for a set without a task or a selector's option that is wrong, `TASK_HELD_OUT` for a set that is not
 * for training, and what finding its selector throws.
 */
export async function requireFeed(
  { feed, purpose }: { readonly feed?: Feed; readonly purpose: 'train' | 'collect' },
  tasks: readonly Task[],
  find: FindSelector,
): Promise<void> {
  for (const set of feed?.sets ?? []) {
    const found = tasksOf(set, tasks, purpose === 'train')
    if (purpose === 'train' && heldOutSplits.has(set.set)) {
      throw new PaddockError('TASK_HELD_OUT', `The feed's set ${set.set} is not for training.`, {
        fix: 'Feed tasks of another split, or ask for purpose `collect`.',
      })
    }
    if (found.length === 0) {
      const splits = [...new Set(tasks.map(({ split }) => split))].toSorted().join(', ')
      throw new PaddockError('CONFIG_INVALID', `The feed's set ${set.set} has no task.`, {
        fix: `Name a split of the tasks (${splits}), or \`*\`.`,
      })
    }
    if (set.selector !== undefined) selectorOptions(await find(set.selector.name, 'choose'), set.selector.options)
  }
}

function permuted(tasks: readonly Task[], words: string): readonly Task[] {
  const keyed = tasks.map((task) => ({ task, key: sha256(`${words}\0${task.digest}`) }))
  return keyed.toSorted((a, b) => (a.key < b.key ? -1 : 1)).map(({ task }) => task)
}
