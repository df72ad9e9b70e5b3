import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { serverFault } from './fault.ts'

/** A program that serves an environment on a port of this machine. */
export interface ServerProgram {
  /** Program and arguments; `{port}` in them, and in `env`, stands for the port that it shall serve, which it finds as `PORT` too. */
  readonly command: readonly string[]
  readonly cwd?: string
  /** What it has of variables beside `PATH`, `HOME`, `LANG` and `TMPDIR`. */
  readonly env?: Readonly<Record<string, string>>
  /** How long it may take until it says that it is healthy, in milliseconds. Default: two minutes. */
  readonly startMs?: number
}

/** A server that answers. */
export interface RunningServer extends AsyncDisposable {
  /** `http://host:port`. */
  readonly origin: string
  /** Fires with `ENVIRONMENT_SERVER_FAILED` when it ended and nobody had asked for that. */
  readonly fault: AbortSignal
}

const passedOn = ['PATH', 'HOME', 'LANG', 'TMPDIR']
const graceMs = 2000
const tailBytes = 2000
const healthMs = 10_000

// Descriptor 3 is a pipe that only Paddock holds: its end means that Paddock is gone, however it went, and the group goes with it.
const group = `
(trap '' TERM; exec >/dev/null 2>&1; cat <&3; kill -TERM 0; sleep 2; kill -KILL 0) &
exec "$@" 3<&-`

/**
 * Starts a program on a free port of the loopback and waits until `GET /health` answers. Its process group ends with the
 * result's disposal, and with this process. Throws `ENVIRONMENT_SERVER_FAILED`; rejects with the signal's reason on abort.
 */
export async function startServer(program: ServerProgram, signal: AbortSignal): Promise<RunningServer> {
  signal.throwIfAborted()
  const port = await freePort()
  const child = launch(program, port)
  const fault = new AbortController()
  const out = tailOf(child)
  const ended = new Promise<void>((resolve) => {
    const over = (what: string, cause?: unknown): void => {
      fault.abort(serverFault(`${what}${out()}`, cause))
      // What it started ends with it.
      kill(child, 'SIGKILL')
      resolve()
    }
    child.once('error', (cause) => over(`could not be started: ${program.command.join(' ')}`, cause))
    child.once('exit', (code, by) => over(`ended with ${by ?? `exit code ${String(code)}`}`))
  })
  const server: RunningServer = {
    origin: `http://127.0.0.1:${port}`,
    fault: fault.signal,
    [Symbol.asyncDispose]: async () => {
      kill(child, 'SIGTERM')
      const hard = setTimeout(() => kill(child, 'SIGKILL'), graceMs)
      await ended
      clearTimeout(hard)
    },
  }
  try {
    await healthy(server, program.startMs ?? 120_000, signal, out)
    return server
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

function launch({ command, cwd, env }: ServerProgram, port: number): ChildProcess {
  const own = Object.fromEntries(
    passedOn.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  )
  const filled = (word: string): string => word.replaceAll('{port}', String(port))
  const more = Object.fromEntries(Object.entries(env ?? {}).map(([name, value]) => [name, filled(value)]))
  return spawn('/bin/sh', ['-c', group, 'sh', ...command.map(filled)], {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...own, PORT: String(port), ...more },
    // A group of its own, so that what it started ends with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
}

async function healthy(server: RunningServer, startMs: number, signal: AbortSignal, out: () => string): Promise<void> {
  const late = AbortSignal.timeout(startMs)
  const stop = AbortSignal.any([signal, server.fault, late])
  for (;;) {
    try {
      const each = AbortSignal.any([stop, AbortSignal.timeout(healthMs)])
      const answer = await fetch(`${server.origin}/health`, { signal: each })
      await answer.body?.cancel()
      if (answer.ok) return
    } catch {
      // Not yet; why it may never be is asked below.
    }
    signal.throwIfAborted()
    server.fault.throwIfAborted()
    if (late.aborted) throw serverFault(`was not healthy within ${startMs} ms${out()}`)
    await delay(100, undefined, { signal: stop }).catch(() => undefined)
  }
}

/** The end of what it printed, for errors. */
function tailOf(child: ChildProcess): () => string {
  let tail = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => (tail = (tail + chunk.toString()).slice(-tailBytes)))
  }
  return () => (tail.trim() === '' ? '' : `: ${tail.trim()}`)
}

async function freePort(): Promise<number> {
  const probe = createServer()
  const listening = Promise.withResolvers<void>()
  probe.once('error', listening.reject)
  probe.listen(0, '127.0.0.1', listening.resolve)
  await listening.promise
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Signals the whole group; a group that is gone is what was wanted. */
function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // ESRCH
  }
}
