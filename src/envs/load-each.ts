import { isPaddockError, PaddockError, type Task } from '../core/index.ts'
import type { Environment } from './contract.ts'

/** A task that cannot be used, and why. */
export interface RefusedTask {
  readonly name: string
  readonly error: PaddockError
}

/**
 * All tasks below `path`, those that cannot be used beside the others, by their names (`only`: no other than these). Throws what {@link Environment.load} throws
 * where it cannot tell one task from another, and `TASK_INVALID` where there is none of a name.
 */
export async function loadEach(
  environment: Environment,
  path: string,
  o: { readonly signal: AbortSignal; readonly only?: readonly string[] },
): Promise<{ readonly tasks: readonly Task[]; readonly refused: readonly RefusedTask[] }> {
  const refused: RefusedTask[] = []
  const onRefused = (name: string, error: unknown): void => {
    o.signal.throwIfAborted()
    refused.push({ name, error: isPaddockError(error) ? error : unreadable(name, error) })
  }
  const tasks = await environment.load(path, { signal: o.signal, onRefused })
  const only = o.only ?? []
  const missing = only.find((name) => ![...tasks, ...refused].some((one) => one.name === name))
  if (missing !== undefined) {
    throw new PaddockError('TASK_INVALID', `${path} holds no task ${missing}`, { fix: 'Give the name of its folder.' })
  }
  const isMeant = ({ name }: { readonly name: string }): boolean => only.length === 0 || only.includes(name)
  return { tasks: tasks.filter(isMeant), refused: refused.filter(isMeant) }
}

function unreadable(name: string, cause: unknown): PaddockError {
  const fix = 'Check the files of the task and who may read them.'
  return new PaddockError('TASK_INVALID', `${name} cannot be read: ${String(cause)}`, { cause, fix })
}
