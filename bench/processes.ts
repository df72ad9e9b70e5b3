/** Processes that a bench started: what they say, and their CPU time as `/proc` has it. */
import type { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** The next message of a child. Rejects if the child ends first. */
export function heard<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`${child.spawnargs.join(' ')} ended with ${code}`))
    child.once('exit', ended)
    child.once('message', (message) => {
      child.off('exit', ended)
      resolve(message as T)
    })
  })
}

/** A process and all that it started. */
export function treeOf(root: number): readonly number[] {
  const parents = new Map<number, number>()
  for (const pid of pids()) parents.set(pid, Number(fieldsOf(pid)[1] ?? 0))
  const tree = [root]
  for (const pid of tree) for (const [child, parent] of parents) if (parent === pid) tree.push(child)
  return tree
}

/** All processes of this machine that run this program. */
export function pidsOf(program: string): readonly number[] {
  return pids().filter((pid) => read(`/proc/${pid}/comm`).trim() === program)
}

function pids(): readonly number[] {
  return readdirSync('/proc').map(Number).filter(Boolean)
}

/** With that of their ended children. */
export function cpuMsOf(processes: readonly number[]): number {
  return processes.reduce((sum, pid) => {
    const fields = fieldsOf(pid)
    // Of hundredths of a second.
    return sum + [11, 12, 13, 14].reduce((own, at) => own + Number(fields[at] ?? 0), 0) * 10
  }, 0)
}

/** Of `/proc/<pid>/stat`, from the state on (proc(5), field 3). */
function fieldsOf(pid: number): readonly string[] {
  const text = read(`/proc/${pid}/stat`)
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // It ended.
    return ''
  }
}
