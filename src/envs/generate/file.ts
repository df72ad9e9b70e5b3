import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { makeTask, PaddockError, type Task } from '../../core/index.ts'
import type { LoadOptions } from '../contract.ts'
import { refuserOf } from '../refuse.ts'

const lineSchema = z.strictObject({
  /** `<generator>:<seed>:<level>`. */
  generated: z.string().min(1),
  digest: z.string(),
  name: z.string().min(1),
  environment: z.string(),
  instruction: z.string(),
  split: z.string().min(1),
  data: z.unknown(),
})

/** A generated task as a line of a file, which holds all of it: whoever reads it needs no generator. */
export function generatedLine({ source, ...rest }: Task): string {
  const { digest, name, environment, instruction, split, data } = rest
  return `${JSON.stringify({ generated: source, digest, name, environment, instruction, split, data })}\n`
}

/**
 * The tasks of a file that {@link generatedLine} wrote; null: it is no such file. Throws `TASK_INVALID` with file and line for a line that
 * was changed, where nobody is told of each.
 */
export async function readGenerated(
  path: string,
  o: LoadOptions & { readonly environment: string; readonly check: (task: Task) => void },
): Promise<readonly Task[] | null> {
  if (!path.endsWith('.jsonl') || (await stat(path).catch(() => null))?.isFile() !== true) return null
  const refuse = refuserOf(o)
  const tasks: Task[] = []
  const names = new Set<string>()
  let number = 0
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    o.signal?.throwIfAborted()
    number += 1
    if (number === 1 && !line.startsWith('{"generated":')) return null
    if (line.trim() === '') continue
    const place = `${path}:${number}`
    try {
      const task = readLine(line, place, o.environment)
      if (names.has(task.name)) throw invalid(place, `there are two tasks ${task.name}`, 'Leave one of them out.')
      names.add(task.name)
      o.check(task)
      tasks.push(task)
    } catch (error) {
      refuse(nameIn(line) ?? place, error)
    }
  }
  return tasks
}

function readLine(line: string, place: string, environment: string): Task {
  const parsed = lineSchema.safeParse(jsonOf(line, place))
  if (!parsed.success) throw invalid(place, z.prettifyError(parsed.error), 'Generate the file anew.')
  const { generated: source, digest, ...rest } = parsed.data
  if (rest.environment !== environment) {
    throw invalid(place, `it is a task of ${rest.environment}, not ${environment}`, `Give --env ${rest.environment}.`)
  }
  const task = makeTask({ ...rest, source })
  if (task.digest === digest) return task
  throw invalid(place, 'it was changed since it was generated', 'Generate the file anew.')
}

function jsonOf(line: string, place: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw invalid(place, 'is not JSON', 'Generate the file anew.', cause)
  }
}

function nameIn(line: string): string | null {
  try {
    return z.looseObject({ name: z.string().min(1) }).parse(JSON.parse(line)).name
  } catch {
    return null
  }
}

function invalid(place: string, what: string, fix: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${place}: ${what}`, { data: { place }, fix, cause })
}
