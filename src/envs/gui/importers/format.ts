import type { Task } from '../../../core/index.ts'
import type { Environment } from '../../contract.ts'

/** What stands at a path that tasks are asked for. */
export interface Place {
  /** Absolute. */
  readonly path: string
  readonly kind: 'file' | 'directory'
  /** Content of a `.json` file; undefined for anything else. */
  readonly json: unknown
}

export interface FormatOptions {
  /** Programs that tasks bring for the host may run, as the caller. */
  readonly trustTasks: boolean
}

/** Gui tasks in a format of the field. A leaf: reads its own files, runs and scores its own tasks. */
export interface GuiFormat {
  /** What `Task.data.format` and `"format"` of a set say. */
  readonly name: string
  /** The tasks at a place; null: it is not of this format. Throws `TASK_INVALID` and `TASK_UNSUPPORTED`, with place and fix. */
  read(place: Place, o: FormatOptions): Promise<readonly Task[] | null>
  /** The program that this task has run on the host; null where it has none. Left out: no task of the format has. */
  readonly hostProgram?: (task: Task) => string | null
  /** Everything but loading. */
  readonly environment: Environment
}
