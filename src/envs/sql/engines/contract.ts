import type { Box, ImageRecipe } from '../../../sandbox/index.ts'
import type { TaskOf } from '../../define.ts'
import type { SqlData } from '../data.ts'

export type SqlEngineName = 'sqlite' | 'duckdb' | 'postgres'

/** A database engine as tasks use it: its image, its program in the box, and what it can do for a verdict. */
export interface SqlEngine {
  readonly name: SqlEngineName
  /** As a model reads it. */
  readonly title: string
  /** The program that runs SQL, for `python3 -c`: ends with its input. */
  readonly program: string
  /** The same, made to stay as long as the box and to be asked by several at once. */
  readonly resident: string
  /** The task's database in every box: a path, or a name of the server. */
  readonly database: string
  /** Address of a further database in a verifier's box. */
  neighbour(kind: 'subset' | 'rebuild', number: number): string
  /** Whether its `steps` are the work of a statement, the same every time. */
  readonly countsSteps: boolean
  /** Whether a task may bring a finished file in place of a script. */
  readonly takesFiles: boolean
  image(task: TaskOf<SqlData>): ImageRecipe
  /** Brings a fresh box to where statements can run; may be called again. Throws `BOX_DEAD`, `VERIFIER_FAILED`. */
  start(box: Box, signal: AbortSignal): Promise<void>
}
