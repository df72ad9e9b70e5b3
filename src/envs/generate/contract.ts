import type { Task } from '../../core/index.ts'

/** Which of the tasks of a generator. */
export interface GeneratorSeed {
  /** From 0. */
  readonly seed: number
  /** From 1 to the generator's `levels`. */
  readonly level: number
  readonly signal?: AbortSignal
}

/** What a generator gives of a task; name, environment and source are made of the seed. */
export interface GeneratedTask<Data> {
  readonly instruction: string
  /** Fits the environment's schema of task data. */
  readonly data: Data
}

/** What the author of an environment writes to have tasks without end. */
export interface GeneratorSpec<Data> {
  /** Lower case, digits and dashes; what `<name>:<seed>:<level>` begins with. */
  readonly name: string
  /** Levels of difficulty; each asks more than the one before. */
  readonly levels: number
  /** The same seed and level give the same bytes on every machine, so no clock and no other chance. Change the name with the output. */
  generate(at: GeneratorSeed): GeneratedTask<Data> | Promise<GeneratedTask<Data>>
}

/** A generator as callers see it: its tasks are whole and their data has been through the environment's schema. */
export interface TaskGenerator {
  readonly name: string
  readonly levels: number
  /** Throws `TASK_INVALID` for a level that does not exist, and for data that does not fit. */
  generate(at: GeneratorSeed): Promise<Task>
}
