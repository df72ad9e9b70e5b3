import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { isPaddockError, PaddockError, type Task } from '../../../core/index.ts'
import type { NamedScript, ScriptStep } from '../../contract.ts'
import type { ImportOptions } from './contract.ts'
import { scriptStepSchema } from '../../run-script.ts'
import { guiDataSchema } from '../data.ts'

const steps = z.array(scriptStepSchema).min(1)

/** What every imported task has, whatever its format. */
export const shownShape = guiDataSchema
  .pick({ tier: true, screen: true, image: true, schema: true, maxActions: true })
  .extend({
    /** Steps that solve the task, where its author knows them; null: not known, so that it cannot be proven. */
    oracle: steps.nullable().default(null),
  })

/** A screen as a set names it: left out, its format has one of its own. */
export const screenShape = guiDataSchema.shape.screen.unwrap().optional()

/** What every set has: how its tasks are shown, and what is known of them beyond their format. */
export const setShape = guiDataSchema.pick({ image: true, maxActions: true, schema: true }).extend({
  split: z.string().default('train'),
  /** Steps that solve a task, by its name. */
  oracles: z.record(z.string(), steps).default({}),
})

/** The script that solves an imported task. Throws `TASK_UNSUPPORTED` where its format brings none. */
export function oracleScript(task: {
  readonly name: string
  readonly data: { readonly oracle: readonly ScriptStep[] | null }
}): NamedScript {
  const { oracle } = task.data
  if (oracle === null) {
    throw new PaddockError('TASK_UNSUPPORTED', `No solution of the imported task ${task.name} is known`, {
      data: { task: task.name },
      fix: 'Give its steps under oracles in the file of the set, by the name of the task.',
    })
  }
  return { name: 'oracle', weight: 1, script: { steps: oracle } }
}

/** Tasks of a set, of which some may need what is not here. */
export class Imported {
  readonly #tasks: Task[] = []
  readonly #refused: { readonly name: string; readonly error: PaddockError }[] = []
  readonly #onRefused: ImportOptions['onRefused']

  /** @param o - who is told of each row that cannot be used; nobody: the first is the error of the set */
  constructor({ onRefused }: Pick<ImportOptions, 'onRefused'>) {
    this.#onRefused = onRefused
  }

  /**
   * Takes a task, or notes why its row cannot be read (`TASK_INVALID`) or run here (`TASK_UNSUPPORTED`); anything else that
   * is thrown goes on.
   *
   * @param name - what the row is called where it is no task
   */
  async take(name: string, read: () => Promise<Task | readonly Task[]>): Promise<void> {
    try {
      this.#tasks.push(...[await read()].flat())
    } catch (error) {
      if (!isPaddockError(error) || (error.code !== 'TASK_UNSUPPORTED' && error.code !== 'TASK_INVALID')) throw error
      this.#refused.push({ name, error })
    }
  }

  /**
   * By name. Rows that were refused are told of, each; where nobody is told, throws what the first was refused for. Neither
   * where the set leaves such rows out. Throws `TASK_INVALID` for an empty set.
   */
  tasks(
    file: string,
    set: { readonly unsupported: 'refuse' | 'leave-out'; readonly oracles: Readonly<Record<string, unknown>> },
  ): readonly Task[] {
    const first = this.#refused[0]?.error
    const told = set.unsupported === 'refuse' ? this.#onRefused : undefined
    if (told !== undefined) for (const { name, error } of this.#refused) told(name, error)
    if (first !== undefined && set.unsupported === 'refuse' && told === undefined) {
      const all = this.#refused.length + this.#tasks.length
      throw new PaddockError(
        first.code,
        `${first.message} (${this.#refused.length} of ${all} tasks cannot be run here)`,
        {
          data: { ...first.data, file, tasks: this.#refused.map(({ error }) => error.message) },
          fix: `${first.fix} Or set "unsupported": "leave-out".`,
        },
      )
    }
    if (this.#tasks.length === 0 && (told === undefined || first === undefined)) {
      const why = first === undefined ? '' : `; the first that was left out: ${first.message}`
      throw invalid(file, 'ids', `no task is left${why}`, 'Name tasks that are there and can be run.')
    }
    requireKnown(
      file,
      set.oracles,
      [...this.#tasks, ...this.#refused].map(({ name }) => name),
    )
    return this.#tasks.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }
}

/** Throws `TASK_INVALID` for solutions of tasks that are not in the set. */
export function requireKnown(file: string, oracles: Readonly<Record<string, unknown>>, names: readonly string[]): void {
  const known = new Set(names)
  const stranger = Object.keys(oracles).find((name) => !known.has(name))
  if (stranger !== undefined) {
    throw invalid(file, `oracles.${stranger}`, `there is no task ${stranger}`, `Use names such as ${names[0] ?? ''}.`)
  }
}

/** One clear error: which file, where in it, what is wrong, what would be right. */
export function invalid(file: string, place: string, what: string, fix: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${file}: ${place === '' ? '' : `${place}: `}${what}`, {
    data: { file, place },
    fix,
    ...(cause === undefined ? {} : { cause }),
  })
}

/** Reads with a schema. Throws `TASK_INVALID` with the first place that does not fit. */
export function fitted<T>(schema: z.ZodType<T>, value: unknown, file: string, fix: string): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw invalid(file, issue?.path.join('.') ?? '', issue?.message ?? 'does not fit', fix)
}

/** A JSON file. Throws `TASK_INVALID`. */
export async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'))
  } catch (cause) {
    throw invalid(file, '', `cannot be read as JSON: ${String(cause)}`, 'Correct the file.', cause)
  }
}
