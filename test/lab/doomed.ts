/** Proxies that are to be killed, and clients that write down what they could act on before. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { type Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import type { SessionLog } from '../../src/trajectory/index.ts'
import { keyHeader, shell } from './lab.ts'
import { type DialectName, eventsOf, type Json, speakerOf } from './speaker.ts'

/** A session of a doomed proxy. */
export interface DoomedSession {
  readonly id: string
  readonly key: string
  readonly strategy: 'record' | 'splice'
}

/** A proxy in a process of its own that has loaded everything and opened nothing. */
export interface WarmProxy {
  /** Opens the store and listens. */
  open(): Promise<{ readonly origin: string; readonly sessions: readonly DoomedSession[] }>
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>
}

export async function warmProxy(
  directory: string,
  engineUrl: string,
  strategies: readonly ('record' | 'splice')[],
): Promise<WarmProxy> {
  const child: ChildProcess = spawn(
    process.execPath,
    ['test/kill/warm-proxy-runner.ts', directory, engineUrl, ...strategies],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'paddock-warm-proxies') },
    },
  )
  const { stdin, stdout } = child
  if (stdin === null || stdout === null) throw new Error('no pipes')
  const lines = createInterface({ input: stdout })
  await nextLine(lines, child)
  return {
    open: async () => {
      const ready = nextLine(lines, child)
      stdin.write('go\n')
      return JSON.parse(await ready) as Awaited<ReturnType<WarmProxy['open']>>
    },
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    },
  }
}

async function nextLine(lines: Interface, child: ChildProcess): Promise<string> {
  const lost = new AbortController()
  const early = once(child, 'exit', { signal: lost.signal }).then(() => {
    throw new Error('the proxy ended before it was ready')
  })
  early.catch(() => undefined)
  const [line] = (await Promise.race([once(lines, 'line'), early])) as [string]
  lost.abort()
  return line
}

/** What a client knows of one call, from the bytes it got and nothing else. */
export interface Seen {
  readonly round: number
  readonly session: string
  readonly callId: string
  /** What it could act on by then; null where only the head of the answer had come. */
  readonly acted: Acted | null
}

/** Text and whole tool calls (arguments as JSON) of an answer, as far as it had come when it became actionable. */
export interface Acted {
  readonly text: string
  readonly calls: readonly Json[]
  /** The answer was whole. */
  readonly ended: boolean
}

/** The clients' own journal, forced to disk: the truth about what they could act on. */
export class ClientJournal {
  private readonly file: string
  private readonly fd: number
  private waiting: string[] = []

  constructor(file: string) {
    this.file = file
    this.fd = openSync(file, 'a')
  }

  /** One `fsync` for all that is written in one turn of the loop. */
  write(seen: Seen): void {
    if (this.waiting.length === 0) setImmediate(() => this.flush())
    this.waiting.push(`${JSON.stringify(seen)}\n`)
  }

  read(): readonly Seen[] {
    this.flush()
    closeSync(this.fd)
    const lines = readFileSync(this.file, 'utf8').split('\n')
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Seen)
  }

  private flush(): void {
    if (this.waiting.length === 0) return
    writeSync(this.fd, this.waiting.join(''))
    fsyncSync(this.fd)
    this.waiting = []
  }
}

/** One call of a client that writes down what it sees. Rejects when the connection breaks. */
export async function witnessedCall(given: {
  readonly origin: string
  readonly session: DoomedSession
  readonly dialect: DialectName
  readonly question: string
  readonly model?: string
  readonly stream: boolean
  readonly agent: Agent | false
  readonly seen: (callId: string, acted: Acted | null) => void
  /** Called for each piece of an answer. */
  readonly piece?: () => void
}): Promise<void> {
  const { origin, session, dialect, stream } = given
  const speaker = speakerOf(dialect, 'Take care.')
  speaker.user(given.question)
  const { path, body } = speaker.request({
    model: given.model ?? 'scripted-hermes',
    stream,
    maxTokens: 300,
    tools: [shell],
  })
  const out = httpRequest(`${origin}/s/${session.id}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...keyHeader(dialect, session.key) },
    agent: given.agent,
  })
  out.end(JSON.stringify(body))
  const [response] = (await once(out, 'response')) as [IncomingMessage]
  const named = response.headers['x-request-id'] ?? response.headers['request-id']
  // A refusal before there was a call (a request that was sent too slowly) promises nothing.
  if (typeof named !== 'string') {
    response.resume()
    return
  }
  const callId = named
  given.seen(callId, null)
  let text = ''
  let told = 0
  for await (const chunk of response) {
    text += String(chunk)
    given.piece?.()
    if (!stream) continue
    const acted = actedOn(dialect, text.slice(0, text.lastIndexOf('\n\n') + 2))
    const size = acted.calls.length + (acted.ended ? 1 : 0)
    if (size <= told) continue
    told = size
    given.seen(callId, acted)
  }
  if (stream || response.statusCode !== 200) return
  const said = speaker.read(text, false)
  const calls = said.calls.map((call) => JSON.parse(call.args) as Json)
  given.seen(callId, { text: said.text, calls, ended: true })
}

/** What the whole events of a stream let a client act on. */
export function actedOn(dialect: DialectName, stream: string): Acted {
  let text = ''
  let ended = false
  const calls: Json[] = []
  const open: string[] = []
  for (const event of eventsOf(stream)) {
    if (dialect === 'chat') {
      const [choice] = event.choices
      text += choice?.delta.content ?? ''
      for (const part of choice?.delta.tool_calls ?? []) {
        open[part.index] = (open[part.index] ?? '') + (part.function.arguments ?? '')
      }
      if ((choice?.finish_reason ?? null) === null) continue
      ended = true
      calls.push(...open.map((args) => JSON.parse(args) as Json))
    } else if (dialect === 'responses') {
      if (event.type === 'response.output_text.delta') text += event.delta
      if (event.type === 'response.output_item.done' && event.item.type === 'function_call') {
        calls.push(JSON.parse(event.item.arguments))
      }
      ended ||= event.type === 'response.completed'
    } else if (dialect === 'messages') {
      if (event.type === 'content_block_start' && event.content_block.type === 'tool_use') open[event.index] = ''
      if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text
      if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta') {
        open[event.index] += event.delta.partial_json
      }
      const args = event.type === 'content_block_stop' ? open[event.index] : undefined
      if (args !== undefined) calls.push(JSON.parse(args === '' ? '{}' : args))
      ended ||= event.type === 'message_delta' && event.delta.stop_reason !== null
    } else {
      const [candidate] = event.candidates ?? []
      for (const part of candidate?.content?.parts ?? []) {
        if (part.thought !== true) text += part.text ?? ''
        if (part.functionCall !== undefined) calls.push(part.functionCall.args)
      }
      ended ||= candidate?.finishReason !== undefined
    }
  }
  return { text, calls, ended }
}

/** What of `seen` the store does not hold as it was seen: one line each. */
export function missingFrom(logs: readonly SessionLog[], seen: readonly Seen[]): readonly string[] {
  const calls = new Map(logs.flatMap((log) => log.calls.map((call) => [call.intent.id, call] as const)))
  const lengths = new Map(logs.flatMap((log) => log.segments.map((one) => [one.id, one.tokens.length] as const)))
  const missing: string[] = []
  for (const { round, session, callId, acted } of seen) {
    const where = `round ${round}, session ${session}, call ${callId}`
    const call = calls.get(callId)
    if (call === undefined) {
      missing.push(`${where}: no intent`)
      continue
    }
    if (acted === null) continue
    const choice = call.commit?.choices[0]
    const message: Json = JSON.parse(choice?.message ?? '{}')
    const stored: Json[] = (message.tool_calls ?? []).map((one: Json) => JSON.parse(one.function.arguments) as Json)
    const text: string = message.content ?? ''
    const isThere =
      (acted.ended ? text === acted.text : text.startsWith(acted.text)) &&
      JSON.stringify(stored.slice(0, acted.calls.length)) === JSON.stringify(acted.calls) &&
      (!acted.ended || stored.length === acted.calls.length) &&
      (lengths.get(choice?.segmentId ?? '') ?? 0) > 0
    if (!isThere)
      missing.push(
        `${where}: acted on ${JSON.stringify(acted)}, stored ${choice?.message ?? call.commit?.outcome.kind ?? 'nothing'}`,
      )
  }
  return missing
}
