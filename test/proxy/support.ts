import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import OpenAI from 'openai'
import { createProxy, type OpenSession, type ProxyEvent, type ProxyOptions, vllmEngine } from '../../src/proxy/index.ts'
import { openStore, type Recorder, type SessionLog } from '../../src/trajectory/index.ts'
import { useStore } from '../fixtures/use-store.ts'

/** A scripted engine and its control routes. */
export interface TestEngine {
  readonly url: string
  control(path: string, body: unknown): Promise<void>
  fault(order: object): Promise<void>
  /** The journal's line of the generation that a call asked for; waits until it is written. */
  generation(callId: string | undefined): Promise<Generation>
  /** Resolves when every fault that was ordered has struck, and what is at work has drawn so many tokens. */
  struck(tokens: number): Promise<void>
  /** Resolves when the engine has finished this many generations of a session. */
  finished(count: number, sessionId: string): Promise<void>
}

/** The scripted engine as a child process. */
export interface EngineProcess extends TestEngine {
  readonly pid: number
  kill(): Promise<void>
  stop(): Promise<void>
}

/** Ground truth of one generation. */
export interface Generation {
  readonly stream: boolean
  readonly promptTokenIds: readonly number[]
  readonly images: readonly string[]
  readonly choices: readonly { readonly tokenIds: readonly number[]; readonly logprobs: readonly number[] }[]
}

interface JournalLine extends Generation {
  readonly kind: string
  readonly requestId: string
  readonly headers: Readonly<Record<string, string>>
}

export async function startEngine(...flags: string[]): Promise<EngineProcess> {
  const child = spawn(process.execPath, ['engine/src/main.ts', '--port', '0', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(child, 'exit')
  const ready = JSON.parse(await firstLine(child)) as { url: string; control: string }
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    await gone
  }
  return { ...engineAt(ready), pid: child.pid ?? 0, kill: () => end('SIGKILL'), stop: () => end('SIGTERM') }
}

/** The control routes of a listening scripted engine. */
export function engineAt(ready: { readonly url: string; readonly control: string }): TestEngine {
  const control = async (path: string, body: unknown) => {
    const answer = await fetch(`${ready.control}${path}`, { method: 'POST', body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`engine control ${path}: ${answer.status} ${await answer.text()}`)
  }
  const journal = async () => {
    const { lines } = (await (await fetch(`${ready.control}/journal`)).json()) as { lines: readonly JournalLine[] }
    return lines.filter((line) => line.kind === 'generation')
  }
  return {
    url: ready.url,
    control,
    fault: (order) => control('/faults', order),
    generation: async (callId) => {
      for (;;) {
        const found = (await journal()).find((line) => line.requestId.endsWith(callId ?? 'no call'))
        if (found !== undefined) return found
      }
    },
    struck: async (tokens) => {
      for (;;) {
        const asked = await Promise.all([fetch(`${ready.control}/faults`), fetch(ready.control)])
        const [{ faults }, { drawing }] = (await Promise.all(asked.map((one) => one.json()))) as [
          { readonly faults: readonly { readonly struck: number }[] },
          { readonly drawing: number },
        ]
        if (faults.every(({ struck }) => struck > 0) && drawing >= tokens) return
      }
    },
    finished: async (count, sessionId) => {
      while ((await journal()).filter((line) => line.headers['x-session-id'] === sessionId).length < count);
    },
  }
}

/** The first line that a child prints. Rejects when it ends instead. */
export async function firstLine(child: ChildProcessByStdio<null, Readable, null>): Promise<string> {
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`${child.spawnargs.join(' ')} ended with ${String(code ?? signal)} before it said anything`)
  })
  const [line] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended])) as [string]
  ended.catch(() => undefined)
  return line
}

/** A proxy over an engine with everything that a test looks at. */
export interface TestProxy extends AsyncDisposable {
  readonly proxy: ReturnType<typeof createProxy>
  readonly recorder: Recorder
  readonly origin: string
  readonly events: ProxyEvent[]
  open(open?: OpenSession): Promise<TestSession>
  /** Resolves with the next event of a type that fits. */
  event(fits: (event: ProxyEvent) => boolean): Promise<ProxyEvent>
}

export interface TestSession {
  readonly id: string
  readonly key: string
  readonly url: string
  readonly client: OpenAI
  log(): Promise<SessionLog>
  /** A raw POST to the chat route; the response as it comes. */
  post(body: unknown, headers?: Record<string, string>): Promise<RawAnswer>
}

export interface RawAnswer {
  readonly response: IncomingMessage
  readonly status: number
  text(): Promise<string>
}

/** A new store in a directory that goes with it. */
export async function testStore(): Promise<
  AsyncDisposable & { readonly recorder: Recorder; readonly directory: string }
> {
  const directory = await mkdtemp(join(tmpdir(), 'paddock-proxy-'))
  const store = await openStore(directory)
  return {
    recorder: store.recorder,
    directory,
    async [Symbol.asyncDispose]() {
      await store.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Records to the store of the worker unless it is given a recorder. */
export async function startProxy(engineUrl: string, options: Partial<ProxyOptions> = {}): Promise<TestProxy> {
  const recorder = options.recorder ?? (await useStore()).recorder
  const events: ProxyEvent[] = []
  const waiting = new Set<() => void>()
  const proxy = createProxy({
    engine: vllmEngine({ url: engineUrl }),
    ...options,
    recorder,
    onEvent: (event) => {
      events.push(event)
      for (const look of waiting) look()
    },
  })
  const listener = await proxy.listen({})
  return {
    proxy,
    recorder,
    origin: listener.origin,
    events,
    async open(open = {}) {
      // Most of what is tested here is the engine's own wire; `test/splice` is about the other strategy.
      const policy = { strategy: 'record' as const, history: 'template' as const, ...open.policy }
      const { session, key, baseUrl } = await proxy.openSession({ ...open, policy })
      const url = baseUrl(listener.origin)
      return {
        id: session.id,
        key,
        url,
        client: new OpenAI({ apiKey: key, baseURL: url, maxRetries: 0 }),
        log: () => recorder.session(session.id),
        post: (body, headers = {}) =>
          rawPost(`${url}/chat/completions`, typeof body === 'string' ? body : JSON.stringify(body), {
            authorization: `Bearer ${key}`,
            'content-type': 'application/json',
            ...headers,
          }),
      }
    },
    event: (fits) =>
      new Promise((resolve) => {
        const look = () => {
          const found = events.find(fits)
          if (found === undefined) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
      }),
    [Symbol.asyncDispose]: () => proxy.close(),
  }
}

export async function rawPost(url: string, body: string | Buffer, headers: Record<string, string>): Promise<RawAnswer> {
  const out = request(url, { method: 'POST', headers, agent: false })
  out.end(body)
  const [response] = (await once(out, 'response')) as [IncomingMessage]
  return {
    response,
    status: response.statusCode ?? 0,
    text: async () => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer)
      return Buffer.concat(chunks).toString()
    },
  }
}

/** The JSON payloads of a stream's events, in order. */
export function payloads(stream: string): Record<string, unknown>[] {
  return stream
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)) as Record<string, unknown>)
}

export const hello = { model: 'scripted-hermes', messages: [{ role: 'user' as const, content: 'Say hello.' }] }

/** A shell tool in the manner of most harnesses. */
export const shellTool = {
  type: 'function' as const,
  function: {
    name: 'shell',
    description: 'Run a command.',
    parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  },
}

/** A script of one candidate for an instruction. */
export const script = (instruction: string, steps: readonly object[]) => ({
  scripts: [{ instruction, candidates: [{ name: 'only', weight: 0, steps }] }],
})
