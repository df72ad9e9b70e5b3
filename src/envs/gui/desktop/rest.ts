import type { Box, ExecSpec } from '../../../sandbox/index.ts'
import { InputQueue } from '../browser/index.ts'

/** How the programs of a desktop are: `idle` when asked, at rest after they had `worked`, or still `busy` at the end. */
export type Rest = 'idle' | 'worked' | 'busy'

/** A program in a box that can be asked whether it rests. */
export interface RunningProgram extends AsyncDisposable {
  /** Waits, at most so long, until neither the program nor what it started works. A program that ended is idle. */
  rest(capMs: number): Promise<Rest>
  /** Resolves with how it ended, and with its last words. */
  readonly ended: Promise<string>
}

/**
 * Starts a program of a desktop. Whether it works cannot be seen on the screen: it may have been handed a key that it has
 * not come to yet. The kernel knows: a thread that has something to do is runnable, from the moment at which it was given
 * it. So a resident script starts the program and looks at its threads (proc(5), /proc/pid/stat), and at those of X server
 * and window manager, through which programs talk; twice, since a terminal hands on by a thread of the kernel.
 */
export function startProgram(
  box: Box,
  o: Pick<ExecSpec, 'user' | 'cwd' | 'env'> & { readonly argv: readonly string[] },
) {
  const input = new InputQueue()
  const stop = new AbortController()
  const waiting: ((rest: Rest) => void)[] = []
  const ended = Promise.withResolvers<string>()
  let isOver = false
  let line = ''
  let words = ''
  const { argv, ...where } = o
  const end = (how: string) => {
    isOver = true
    for (const tell of waiting.splice(0)) tell('idle')
    ended.resolve(`${how}: ${words.trim()}`)
  }
  box
    .exec(
      {
        ...where,
        command: ['python3', '-c', script, ...argv],
        stdin: input,
        output: 'told',
        timeoutMs: 7 * 24 * 3600_000,
        graceMs: 200,
        onStdout: (chunk) => {
          const lines = (line + Buffer.from(chunk).toString('utf8')).split('\n')
          line = lines.pop() ?? ''
          for (const said of lines) waiting.shift()?.(said === 'idle' || said === 'worked' ? said : 'busy')
        },
        onStderr: (chunk) => (words = (words + Buffer.from(chunk).toString('utf8')).slice(-500)),
      },
      { signal: stop.signal },
    )
    .then(
      (result) => end(result.kind === 'exited' ? `exit ${result.code}` : result.kind),
      () => end('stopped'),
    )
  const program: RunningProgram = {
    rest: (capMs) => {
      if (isOver) return Promise.resolve('idle')
      const answer = new Promise<Rest>((resolve) => waiting.push(resolve))
      input.push(Buffer.from(`${Math.ceil(capMs)}\n`))
      return answer
    },
    ended: ended.promise,
    [Symbol.asyncDispose]: async () => {
      end('stopped')
      input.end()
      stop.abort(new Error('the desktop was closed'))
    },
  }
  return program
}

const script = `import os, subprocess, sys, threading, time
quiet = subprocess.DEVNULL
program = subprocess.Popen(sys.argv[1:], stdin=quiet, stdout=quiet)
threading.Thread(target=lambda: os._exit(program.wait() & 255), daemon=True).start()
def working():
    parents, states, more = {}, {}, {str(program.pid)}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            for task in os.listdir('/proc/' + pid + '/task'):
                with open('/proc/' + pid + '/task/' + task + '/stat') as file:
                    name, _, rest = file.read().partition('(')[2].rpartition(')')
                state, parent = rest.split()[:2]
                parents[pid] = parent
                if name in ('Xvfb', 'openbox'):
                    more.add(pid)
                states.setdefault(pid, set()).add(state)
        except OSError:
            pass
    found = set()
    while more:
        found |= more
        more = {pid for pid, parent in parents.items() if parent in found} - found
    return any(states.get(pid, set()) & {'R', 'D'} for pid in found)
for line in sys.stdin:
    until, still, said = time.monotonic() + float(line) / 1000, 0, 'idle'
    while still < 2 and time.monotonic() < until:
        if working():
            still, said = 0, 'worked'
        else:
            still += 1
        if still < 2:
            time.sleep(0.008)
    print(said if still == 2 else 'busy', flush=True)
program.kill()`
