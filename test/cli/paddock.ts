/** Runs the real launcher, as a person would. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export const launcher = fileURLToPath(new URL('../../paddock', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

type Env = Readonly<Record<string, string>>

/** What is run, and where: by default the launcher, here. */
export interface Place {
  readonly program?: string
  readonly cwd?: string
}

/** One command to its end. */
export async function paddock(args: readonly string[], env: Env = {}, place: Place = {}): Promise<Ended> {
  const child = spawn(place.program ?? launcher, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(place.cwd === undefined ? {} : { cwd: place.cwd }),
  })
  return ended(child)
}

async function ended(child: ChildProcess): Promise<Ended> {
  let out = ''
  let err = ''
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out, err }
}

export interface Ready {
  readonly type: 'ready'
  readonly rolloutId: string
  readonly sessionId: string
  readonly env: { readonly OPENAI_BASE_URL: string; readonly OPENAI_API_KEY: string; readonly OPENAI_MODEL: string }
  readonly engineControl: string | null
  readonly inference: string
  readonly control: string
  readonly pid: number
}

/** A running `paddock serve --json`. */
export interface Serving {
  readonly ready: Ready
  /** Resolves with the next line that is a recorded call. */
  nextCall(): Promise<Record<string, unknown>>
  kill(signal: NodeJS.Signals): void
  /** Ctrl-C, then its end. */
  stop(): Promise<Ended>
  readonly ended: Promise<Ended>
}

/** Starts `paddock serve` on free ports. Rejects with what it printed when it ends instead. */
export async function serve(
  data: string,
  args: readonly string[] = [],
  env: Env = {},
  place: Place = {},
): Promise<Serving> {
  const own = ['serve', '--json', '--data', data, '--port', '0', '--control-port', '0']
  const child = spawn(place.program ?? launcher, [...own, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(place.cwd === undefined ? {} : { cwd: place.cwd }),
  })
  const end = ended(child)
  const lines = lineTakers()
  createInterface({ input: child.stdout }).on('line', lines.put)
  lines.endWith(end)
  const first = await lines.next()
  return {
    ready: first as unknown as Ready,
    nextCall: lines.next,
    kill: (signal) => child.kill(signal),
    stop: () => {
      child.kill('SIGINT')
      return end
    },
    ended: end,
  }
}

/** Lines of JSON for whoever asks for the next one. */
export function lineTakers(): {
  put(this: void, text: string): void
  next(this: void): Promise<Record<string, unknown>>
  endWith(end: Promise<Ended>): void
} {
  const waiting: Record<string, unknown>[] = []
  const takers: PromiseWithResolvers<Record<string, unknown>>[] = []
  return {
    put: (text) => {
      const line = JSON.parse(text) as Record<string, unknown>
      const taker = takers.shift()
      if (taker === undefined) waiting.push(line)
      else taker.resolve(line)
    },
    next: () => {
      const line = waiting.shift()
      if (line !== undefined) return Promise.resolve(line)
      const taker = Promise.withResolvers<Record<string, unknown>>()
      takers.push(taker)
      return taker.promise
    },
    // Whoever waits for a line of a command that is gone is told why there is none.
    endWith: (end) =>
      void end.then(({ code, err }) => {
        for (const taker of takers) taker.reject(new Error(`paddock serve ended with ${String(code)}: ${err}`))
      }),
  }
}

/** A chat call with the session's key. */
export function chat(ready: Ready, body: object, headers: Env = {}): Promise<Response> {
  return fetch(`${ready.env.OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${ready.env.OPENAI_API_KEY}`,
      'content-type': 'application/json',
      ...headers,
    },
    body: JSON.stringify({ model: ready.env.OPENAI_MODEL, ...body }),
  })
}
