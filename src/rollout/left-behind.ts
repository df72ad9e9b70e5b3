import type { Box } from '../sandbox/index.ts'

/** A process, as `/proc/<pid>/stat` tells of it; two with the same `id` are the same one. */
interface Running {
  readonly id: string
  readonly pid: number
  readonly parent: number
  readonly line: string
}

/** The shell's own id, its box's processes, and the names of files in memory. Names end with a line each. */
const script = 'echo $$; cat /proc/[0-9]*/stat 2>/dev/null; echo; ls -A /dev/shm 2>/dev/null; true'

/** `pid (name) state parent …`, and the time of its start as the 22nd field (proc(5)). */
const stat = /^(\d+) \((.*)\) (\S) (\d+)(?: \S+){17} (\d+) /

/**
 * What of a box is in no copy of its files: processes, and files in memory. What stood there when {@link LeftBehind.begin} was called is
 * the harness itself and services of the set-up; what came since, and is there while the harness waits for an answer, was left running
 * by the agent's tools.
 */
export class LeftBehind {
  #before: ReadonlySet<string> | null = null

  /** To be called before any tool has run; a second time it does nothing. */
  async begin(box: Box): Promise<void> {
    this.#before ??= new Set((await standingIn(box)).map(({ id }) => id))
  }

  /** A line for each. Empty too where the box has no shell to ask. */
  async since(box: Box): Promise<readonly string[]> {
    const before = this.#before
    if (before === null) return []
    return (await standingIn(box)).filter(({ id }) => !before.has(id)).map(({ line }) => line)
  }
}

async function standingIn(box: Box): Promise<readonly { readonly id: string; readonly line: string }[]> {
  const { stdout } = await box.exec({ command: ['sh', '-c', script], cwd: '/' })
  const [listed = '', inMemory = ''] = Buffer.from(stdout).toString().split('\n\n', 2)
  const [own = '', ...lines] = listed.split('\n')
  const files = inMemory.split('\n').filter((name) => name !== '')
  return [
    ...withoutAsker(lines.flatMap(runningIn), Number(own)),
    ...files.map((name) => ({ id: `/dev/shm/${name}`, line: `the file /dev/shm/${name}` })),
  ]
}

function runningIn(line: string): readonly Running[] {
  const [, pid, name, state, parent, start] = stat.exec(line) ?? []
  if (pid === undefined || name === undefined || state === 'Z') return []
  return [{ id: `${pid}@${start}`, pid: Number(pid), parent: Number(parent), line: `the process ${name} (${pid})` }]
}

/** Not the shell that asked, its keeper and its own commands, nor PID 1. */
function withoutAsker(all: readonly Running[], own: number): readonly Running[] {
  const keeper = all.find(({ pid }) => pid === own)?.parent
  return all.filter(({ pid, parent }) => pid !== 1 && pid !== own && pid !== keeper && parent !== own)
}
