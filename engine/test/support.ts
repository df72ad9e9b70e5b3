import { Engine } from '../src/engine.ts'
import { listen } from '../src/http/server.ts'
import { readOptions } from '../src/options.ts'
import { routesFor } from '../src/routes.ts'
import type { RunningEngine } from '../src/http/server.ts'
import type { GenerationLine } from '../src/journal.ts'

/** A parsed answer as loose data: tests look at foreign shapes. */
// oxlint-disable-next-line typescript/no-explicit-any -- assertions read deep into wire fixtures of many shapes
export type Loose = any

/** An engine on a free loopback port, started by the same flags as the process. */
export async function startEngine(...flags: string[]): Promise<RunningEngine & AsyncDisposable> {
  const options = readOptions(flags)
  if (options === 'help') throw new Error('no help in tests')
  const running = await listen(new Engine(options), routesFor(options))
  return { ...running, [Symbol.asyncDispose]: () => running.close() }
}

export async function post(
  engine: { url: string },
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Loose> {
  const response = await fetch(engine.url + path, { method: 'POST', body: JSON.stringify(body), headers })
  const text = await response.text()
  if (!response.ok) throw new Error(`${response.status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

export async function get(engine: { url: string }, path: string): Promise<Loose> {
  const response = await fetch(engine.url + path)
  return response.json()
}

/** Status and body of a request that is meant to be refused. */
export async function refused(
  engine: { url: string },
  path: string,
  body: unknown,
): Promise<{ status: number; headers: Headers; body: Loose }> {
  const response = await fetch(engine.url + path, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

/** The `data:` payloads of an event stream, in order; `broken` when the connection was cut. */
export async function postStream(
  engine: { url: string },
  path: string,
  body: unknown,
): Promise<{ events: string[]; broken: boolean; raw: string }> {
  const response = await fetch(engine.url + path, { method: 'POST', body: JSON.stringify(body) })
  let raw = ''
  let broken = false
  try {
    const decoder = new TextDecoder()
    for await (const part of response.body ?? []) raw += decoder.decode(part, { stream: true })
  } catch {
    broken = true
  }
  const events = raw.split('\n\n').flatMap((event) => (event.startsWith('data: ') ? [event.slice(6)] : []))
  return { events, broken, raw }
}

/** Chunks without the closing `[DONE]`. */
export function chunksOf(events: readonly string[]): Loose[] {
  return events.filter((event) => event !== '[DONE]').map((event): Loose => JSON.parse(event))
}

/** Joins a chat stream to one message per choice, the way clients do. */
export function joinChat(
  chunks: readonly Loose[],
): { role: string; content: string; reasoning: string; calls: Loose[]; ids: number[]; finish: string | null }[] {
  const joined: ReturnType<typeof joinChat> = []
  for (const chunk of chunks) {
    for (const choice of chunk.choices) {
      const into = (joined[choice.index] ??= { role: '', content: '', reasoning: '', calls: [], ids: [], finish: null })
      into.role += choice.delta.role ?? ''
      into.content += choice.delta.content ?? ''
      into.reasoning += choice.delta.reasoning ?? ''
      into.ids.push(...(choice.token_ids ?? []))
      into.finish = choice.finish_reason ?? into.finish
      for (const call of choice.delta.tool_calls ?? []) {
        const known = (into.calls[call.index] ??= { id: call.id, name: '', arguments: '' })
        known.name += call.function.name ?? ''
        known.arguments += call.function.arguments ?? ''
      }
    }
  }
  return joined
}

/** The generation lines of an engine's journal. */
export function generations(engine: RunningEngine): GenerationLine[] {
  return engine.engine.journal.lines().filter((line): line is GenerationLine => line.kind === 'generation')
}

export const SHELL_TOOL = {
  type: 'function',
  function: {
    name: 'bash',
    description: 'Run a command.',
    parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  },
}

export const INSTRUCTION = 'Count the users in /app/users.csv and write the number to /app/count.txt.'

/** Two ways to do the task, and one that gets it wrong. */
export const SCRIPT = {
  instruction: INSTRUCTION,
  candidates: [
    {
      name: 'good',
      weight: 0.5,
      steps: [
        { think: 'I should look at the file first.' },
        { say: 'Let me look at the file.' },
        { shell: 'head -3 /app/users.csv' },
        { think: 'There is a header — one line less.' },
        { parallel: [{ shell: 'wc -l < /app/users.csv' }, { shell: 'ls /app' }] },
        { shell: 'echo 41 > /app/count.txt' },
        { say: 'There are 41 users; the number is in `/app/count.txt`. ✓' },
      ],
    },
    {
      name: 'hasty',
      weight: 0,
      steps: [
        { think: 'I should just count.' },
        { shell: 'wc -l < /app/users.csv > /app/count.txt' },
        { say: 'Done.' },
      ],
    },
  ],
}
