import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskOf } from '../define.ts'
import type { TerminalData } from './data.ts'

/** Where a task, or a step of one, has its instruction, solution and scripts. */
export function ownFolder(task: TaskOf<TerminalData>): string {
  return task.data.step === undefined ? task.source : join(task.source, 'steps', task.data.step)
}

/** Directories whose files become `/tests`, later ones over earlier ones: those of the task, and those of its step. */
export function testsOf(task: TaskOf<TerminalData>): readonly string[] {
  const folders = [join(task.source, 'tests')]
  if (task.data.step !== undefined) folders.push(join(ownFolder(task), 'tests'))
  return folders.filter((folder, i) => i === folders.length - 1 || existsSync(folder)).filter(existsSync)
}
