import { PaddockError, type Task } from '../../../core/index.ts'
import type { Box } from '../../../sandbox/index.ts'
import type { Artifacts, BoxContext, BoxNeeds, Environment, LoadOptions, Tool } from '../../contract.ts'
import { defineEnvironment, type EnvironmentSpec, type TaskOf } from '../../define.ts'
import { guiBox, guiPrompt, guiTools, type Shown } from '../attempt.ts'
import { toArtifact } from '../record.ts'
import type { GuiSession } from '../session.ts'

/** What stands at a path that tasks are asked for. */
export interface Place {
  /** Absolute. */
  readonly path: string
  readonly kind: 'file' | 'directory'
  /** Content of a `.json` file; undefined for anything else. */
  readonly json: unknown
}

export interface ImportOptions extends Pick<LoadOptions, 'onRefused'> {
  /** Programs that tasks bring for the host may run, as the caller. */
  readonly trustTasks: boolean
}

/**
 * What the author of an importer writes: how tasks in a format of the field are found, and, as of any environment, how they
 * are worked on and scored. What is left out of the latter is as in any gui task.
 */
export interface ImporterSpec<Data extends Shown> extends Omit<
  EnvironmentSpec<Data>,
  'load' | 'resumesFromFiles' | 'scoreGroup' | 'scripts' | 'box' | 'tools' | 'collect'
> {
  /** Lower case, digits and dashes: what `"format"` of a set says, and `format` in the data of each task. */
  readonly name: string
  /** The tasks at a place; null: it is not of this format. Throws `TASK_INVALID` and `TASK_UNSUPPORTED`, with place and fix. */
  read(place: Place, o: ImportOptions): Promise<readonly Task[] | null>
  /** The program that this task has run on the host; null where it has none. Default: no task of the format has. */
  hostProgram?(task: TaskOf<Data>): string | null
  /** The attempt in a box, opened at first use: `openAttempt` with what the browser is served. */
  attempt(task: TaskOf<Data>, box: Box): Promise<GuiSession>
  /** Default: the box of the task's tier. */
  box?(task: TaskOf<Data>): BoxNeeds
  /** Default: those of every gui task. */
  tools?(task: TaskOf<Data>): readonly Tool[]
  /** Default: the record of the attempt, which is closed then. */
  collect?(context: Omit<BoxContext, 'task'> & { readonly task: TaskOf<Data> }): Promise<Artifacts>
  readonly scripts: Omit<EnvironmentSpec<Data>['scripts'], 'nullAgent'>
}

/** Gui tasks in a format of the field. Made by {@link defineImporter}. */
export interface Importer {
  readonly name: string
  readonly apiVersion: 1
  read(place: Place, o: ImportOptions): Promise<readonly Task[] | null>
  hostProgram(task: Task): string | null
  /** Everything but finding the tasks. */
  readonly environment: Environment
}

/** Makes an importer of its author's plain object. Throws `ENVIRONMENT_INVALID` naming the part and the fix. */
export function defineImporter<Data extends Shown>(spec: ImporterSpec<Data>): Importer {
  const { name } = spec
  if (typeof name !== 'string' || !/^[a-z][a-z0-9-]*$/.test(name))
    throw wrong(name, 'name', 'must be lower case letters, digits and dashes')
  if (typeof spec.read !== 'function') throw wrong(name, 'read', 'must be a function')
  if (!['function', 'undefined'].includes(typeof spec.hostProgram))
    throw wrong(name, 'hostProgram', 'must be a function')
  if (typeof spec.attempt !== 'function') throw wrong(name, 'attempt', 'must be a function')
  const environment = defineEnvironment<Data>({
    box: ({ data }) => guiBox(data.tier),
    setup: async ({ task, box }) => {
      await spec.attempt(task, box)
    },
    tools: (task) => guiTools(task.data, (box) => spec.attempt(task, box)),
    systemPrompt: () => guiPrompt,
    collect: async ({ task, box }) => {
      const session = await spec.attempt(task, box)
      const record = session.record()
      await session.close()
      return { items: [toArtifact(record)] }
    },
    ...spec,
    name: 'gui',
    load: async () => [],
  })
  return {
    name,
    apiVersion: 1,
    environment,
    read: async (place, o) => {
      const tasks = await spec.read(place, o)
      const other = tasks?.find((task) => task.environment !== 'gui' || formatIn(task) !== name)
      if (other === undefined) return tasks
      throw wrong(name, 'read', `must give tasks of the environment gui with format ${name}; ${other.name} is none`)
    },
    // Data that do not fit are refused before anything is done with them.
    hostProgram: (task) => {
      const { data } = spec.task.safeParse(task.data)
      return data === undefined ? null : (spec.hostProgram?.({ ...task, data }) ?? null)
    },
  }
}

/** The format that the data of a task, or a set, names; null: none. */
export function formatIn({ data }: { readonly data: unknown }): string | null {
  const named = typeof data === 'object' && data !== null && 'format' in data ? data.format : null
  return typeof named === 'string' ? named : null
}

function wrong(importer: unknown, part: string, what: string): PaddockError {
  return new PaddockError('ENVIRONMENT_INVALID', `Gui importer ${String(importer)}: ${part} ${what}`, {
    data: { importer: String(importer), part },
    fix: `Give defineImporter a ${part} that fits: it ${what}.`,
  })
}
