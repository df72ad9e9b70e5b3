import { type Id, PaddockError, type Task } from '../../core/index.ts'
import type { CatalogueReader } from '../../trajectory/index.ts'
import { bareTask } from '../bare-task.ts'
import type { OwnRuns } from './own-runs.ts'
import type { TrainerRun } from './run-config.ts'

/** A task as a trainer names it: one that is known, by name or digest, or a bare instruction. */
export type AskedTask = string | { readonly digest: string } | { readonly name: string; readonly instruction: string }

export interface TaskSource {
  readonly store: { readonly catalogue: Pick<CatalogueReader, 'task'> }
  readonly own: Pick<OwnRuns, 'task'>
}

/** The task that is meant; a bare instruction is of `split`. Throws `NOT_FOUND`, `TASK_UNSUPPORTED`. */
export async function taskOf(
  { store, own: runs }: TaskSource,
  { id, own }: { readonly id: Id; readonly own: TrainerRun['own'] },
  named: AskedTask,
  split = 'train',
): Promise<Task> {
  if (typeof named === 'object' && 'instruction' in named) {
    if (own === null) return bareTask({ ...named, split })
    throw new PaddockError('TASK_UNSUPPORTED', `run ${id} has its tasks from ${own.tasks}`, {
      fix: 'Name one of them, by name or digest; a bare instruction is for runs without `tasks`.',
    })
  }
  const name = typeof named === 'string' ? named : named.digest
  return own === null ? store.catalogue.task(name) : runs.task(id, name)
}
