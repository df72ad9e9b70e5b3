import type { LoadedConfig } from '../config/index.ts'
import type { Task } from '../core/index.ts'
import { candidatesOf } from '../rollout/index.ts'
import type { RunRequest } from '../server/index.ts'
import { type CatalogueReader, chooseTasks, seeded, type Selector, selectorOptions } from '../trajectory/index.ts'
import { selectorFor } from './selectors.ts'

type Select = NonNullable<RunRequest['select']>

interface RunSelector {
  readonly selector: Selector
  readonly options: Readonly<Record<string, number>>
}

/** Throws `SELECTOR_UNKNOWN`, `SELECTOR_INVALID`, and `CONFIG_INVALID` for an option that it does not take. */
export async function runSelector(loaded: LoadedConfig, select: Select): Promise<RunSelector> {
  const selector = await selectorFor(loaded, select.name, 'choose')
  return { selector, options: selectorOptions(selector, select.options) }
}

/** What a selector chooses of the tasks of a run, by all that is remembered of this harness. Throws `SELECTOR_INVALID`. */
export async function selectedTasks(
  tasks: readonly Task[],
  o: RunSelector & {
    readonly select: Select
    readonly harness: string
    readonly catalogue: Pick<CatalogueReader, 'memory'>
  },
): Promise<readonly Task[]> {
  const { selector, options, select, harness, catalogue } = o
  const memory = await catalogue.memory({
    harness,
    variant: 'default',
    taskDigests: tasks.map(({ digest }) => digest),
    by: [],
    sort: 'attempts',
    descending: false,
    limit: tasks.length,
    after: null,
  })
  const choice = {
    tasks: candidatesOf(tasks, memory, new Map()),
    count: select.count,
    options,
    random: seeded(`${select.seed}\0run`),
  }
  const byDigest = new Map(tasks.map((task) => [task.digest, task]))
  return chooseTasks(selector, choice).flatMap((digest) => byDigest.get(digest) ?? [])
}
