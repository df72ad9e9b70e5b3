import { makeTask, type Task } from '../core/index.ts'

/** A task of no environment: an instruction alone, for a harness on the host that is only looked at. */
export function bareTask(o: { readonly name: string; readonly instruction: string; readonly split?: string }): Task {
  const { name, instruction, split = 'train' } = o
  return makeTask({ name, environment: 'none', instruction, split, data: {}, source: '' })
}
