import type { Task } from '../core/index.ts'
import { makeTask } from '../envs/index.ts'

/** A task of no environment: an instruction alone, for a harness on the host that is only looked at. */
export function bareTask(o: { readonly name: string; readonly instruction: string }): Task {
  const { name, instruction } = o
  return makeTask({ name, environment: 'none', instruction, split: 'train', data: {}, source: '' })
}
