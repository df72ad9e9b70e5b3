import { PaddockError } from '../../../core/index.ts'
import type { ImportOptions } from './contract.ts'

/** Refuses a program that a task has run on the host, outside of every box, unless the caller trusts the tasks. */
export function requireTrust(program: string | null, { trustTasks }: ImportOptions): void {
  if (program === null || trustTasks) return
  throw new PaddockError(
    'TASK_UNTRUSTED',
    `The task would run ${program} on this machine, as you and outside of any box`,
    {
      data: { program },
    },
  )
}
