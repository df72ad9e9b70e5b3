import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { generatedPlace, PaddockError } from '../core/index.ts'

const chainFile = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]*$/, 'must be lower case letters, digits and dashes'),
  /** Directory of the tasks, from that of the file, or generated ones. */
  tasks: z.string().min(1).default('.'),
  environment: z.string().min(1).default('terminal'),
  /** Names of tasks, in order. */
  links: z.array(z.string().min(1)).min(2, 'must name two tasks at least'),
  libraries: z.enum(['shared', 'parallel']).default('shared'),
  /** What later use of a library adds to the reward of whoever left it. */
  credit: z.number().min(0).default(0),
  /** Calls of an agent at each link; null: as configured. */
  horizon: z.int().min(1).nullable().default(null),
})

export type ChainFile = z.output<typeof chainFile>

/** Reads a chain. Throws `TASK_INVALID` with the place. */
export async function readChain(path: string): Promise<ChainFile> {
  const invalid = (what: string, cause?: unknown) =>
    new PaddockError('TASK_INVALID', `${path}: ${what}`, { data: { file: path }, cause })
  const text = await readFile(path, 'utf8')
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch (cause) {
    throw invalid('is not JSON', cause)
  }
  const parsed = chainFile.safeParse(raw)
  if (!parsed.success) throw invalid(z.prettifyError(parsed.error))
  const { tasks, ...rest } = parsed.data
  return { ...rest, tasks: generatedPlace(tasks) === null ? resolve(dirname(path), tasks) : tasks }
}
