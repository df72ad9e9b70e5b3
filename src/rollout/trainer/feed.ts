import { PaddockError, sha256, type Task } from '../../core/index.ts'
import { heldOutSplits } from '../../trajectory/index.ts'

/** What a run asks for by itself. JSON. */
export interface Feed {
  /** Same seed, sets and tasks: same order. */
  readonly seed: number
  readonly sets: readonly FeedSet[]
}

export interface FeedSet {
  /** A split of the run's tasks; `*`: all that may be trained. */
  readonly set: string
  /** Share of the groups, against the weights of the others. */
  readonly weight: number
  /** Members of each group. */
  readonly n: number
}

/** One group of a feed. */
export interface Drawn {
  readonly task: Task
  readonly set: string
  readonly n: number
  /** How many times the whole set was asked for before. */
  readonly epoch: number
}

/** The tasks of a set. `trains`: held-out ones are not among `*`. */
export function tasksOf({ set }: FeedSet, tasks: readonly Task[], trains: boolean): readonly Task[] {
  if (set === '*') return tasks.filter(({ split }) => !trains || !heldOutSplits.has(split))
  return tasks.filter(({ split }) => split === set)
}

/**
 * All that a feed asks for, without an end: by chance as the weights say, and within a set in an order that is new in each epoch. Each
 * place is a pure function of seed, sets and tasks, so that nothing but the place has to be remembered. No set may be empty.
 */
export function* drawsOf({ seed, sets }: Feed, tasks: readonly Task[], trains: boolean): Generator<Drawn, never> {
  const total = sets.reduce((sum, { weight }) => sum + weight, 0)
  const pools = sets.map((set) => ({
    ...set,
    tasks: tasksOf(set, tasks, trains),
    taken: 0,
    order: [] as readonly Task[],
  }))
  for (let place = 0; ; place += 1) {
    let left = chance(`${seed}\0${place}`) * total
    let pool = pools[0]
    for (const one of pools) {
      pool = one
      left -= one.weight
      if (left < 0) break
    }
    if (pool === undefined || pool.tasks.length === 0) throw new Error('a feed has sets, and they have tasks')
    const epoch = Math.floor(pool.taken / pool.tasks.length)
    const at = pool.taken % pool.tasks.length
    if (at === 0) pool.order = permuted(pool.tasks, `${seed}\0${pool.set}\0${epoch}`)
    pool.taken += 1
    const task = pool.order[at]
    if (task !== undefined) yield { task, set: pool.set, n: pool.n, epoch }
  }
}

/** Throws `CONFIG_INVALID` for a set without a task, `TASK_HELD_OUT` for one that is not for training. */
export function requireFeed(
  { feed, purpose }: { readonly feed?: Feed; readonly purpose: 'train' | 'collect' },
  tasks: readonly Task[],
): void {
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
  }
}

/** In [0, 1), the same for the same words. */
function chance(words: string): number {
  return Number.parseInt(sha256(words).slice(0, 12), 16) / 2 ** 48
}

function permuted(tasks: readonly Task[], words: string): readonly Task[] {
  const keyed = tasks.map((task) => ({ task, key: sha256(`${words}\0${task.digest}`) }))
  return keyed.toSorted((a, b) => (a.key < b.key ? -1 : 1)).map(({ task }) => task)
}
