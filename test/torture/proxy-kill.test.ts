import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fsck, openReader, openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { payloads, script, shellTool, startEngine, type EngineProcess } from '../proxy/support.ts'
import { randomFrom } from './random.ts'

const kills = 20
const seed = 20_261_120

let engine: EngineProcess
let directory: string

beforeAll(async () => {
  directory = tempDir()
  engine = await startEngine('--tokens-per-second', '400')
  await engine.control('/scripts', script('Talk.', [{ say: 'one two three four five six seven eight nine ten' }]))
  await engine.control('/scripts', script('Act.', [{ shell: 'rm -rf build && make' }, { say: 'Done.' }]))
})
afterAll(async () => {
  await engine.stop()
})

/** What the client knows of one call, from the bytes it got and nothing else. */
interface Seen {
  readonly callId: string
  /** Everything that it could act on: the content and the tool calls of a finished answer. Null while unfinished. */
  readonly acted: { readonly content: string; readonly tools: readonly string[] } | null
}

/** The load client's own journal, forced to disk line by line: the truth about what it could act on. */
class Journal extends EventEmitter<{ acted: [] }> {
  private readonly file: string
  private readonly fd: number

  constructor(file: string) {
    super()
    this.file = file
    this.fd = openSync(file, 'a')
  }

  write(seen: Seen): void {
    writeSync(this.fd, `${JSON.stringify(seen)}\n`)
    fsyncSync(this.fd)
    if (seen.acted !== null) this.emit('acted')
  }

  read(): Seen[] {
    closeSync(this.fd)
    const lines = readFileSync(this.file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
    return lines.map((line): Seen => JSON.parse(line) as Seen)
  }
}

it('nothing that a client could act on is missing after kill -9 at any moment', async () => {
  const journal = new Journal(join(directory, 'client.jsonl'))
  const random = randomFrom(seed)
  const sessions: string[] = []
  for (let round = 0; round < kills; round += 1) {
    const { child, url, key, session } = await startRunner()
    sessions.push(session)
    const stop = new AbortController()
    const agent = new Agent({ keepAlive: true })
    const workers = Array.from({ length: 8 }, (_, index) =>
      loadWorker({ url, key, index, journal, agent, stop: stop.signal }),
    )
    // From the first answer on, however slow the machine is: the moments lie in the middle of the work.
    await once(journal, 'acted')
    const atMs = Math.floor(random() * 400)
    await new Promise((resolve) => setTimeout(resolve, atMs))
    child.kill('SIGKILL')
    await once(child, 'exit')
    stop.abort()
    await Promise.all(workers)
    agent.destroy()
  }
  // Opening again runs recovery on the last victim's calls.
  await (await openStore(join(directory, 'data'))).close()

  const seen = journal.read()
  const acted = seen.filter((entry) => entry.acted !== null)
  expect(acted.length).toBeGreaterThanOrEqual(kills)
  const reader = await openReader(join(directory, 'data'))
  const calls = new Map<string, Awaited<ReturnType<typeof reader.recorder.session>>['calls'][number]>()
  const segments = new Map<string, number>()
  for (const id of sessions) {
    const log = await reader.recorder.session(id)
    for (const call of log.calls) calls.set(call.intent.id, call)
    for (const segment of log.segments) segments.set(segment.id, segment.tokens.length)
  }
  await reader.close()

  for (const { callId } of seen) expect(calls.has(callId), `intent of ${callId}`).toBe(true)
  for (const entry of acted) {
    const commit = calls.get(entry.callId)?.commit
    const message = JSON.parse(commit?.choices[0]?.message ?? '{}')
    expect(message.content ?? '').toBe(entry.acted?.content)
    expect(
      (message.tool_calls ?? []).map((call: { function: { arguments: string } }) => call.function.arguments),
    ).toEqual(entry.acted?.tools)
    expect(segments.get(commit?.choices[0]?.segmentId ?? '')).toBeGreaterThan(0)
  }
  const outcomes = [...calls.values()].map((call) => call.commit?.outcome.kind ?? 'none')
  expect(outcomes).not.toContain('none')
  expect(outcomes.filter((outcome) => outcome === 'interrupted').length).toBeGreaterThan(0)
  expect((await fsck(join(directory, 'data'))).problems).toEqual([])
})

async function startRunner(): Promise<{ child: ChildProcess; url: string; key: string; session: string }> {
  const child = spawn(process.execPath, ['test/kill/proxy-runner.ts', join(directory, 'data'), engine.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return { child, ...(JSON.parse(String(line)) as { url: string; key: string; session: string }) }
}

interface Load {
  readonly url: string
  readonly key: string
  readonly index: number
  readonly journal: Journal
  readonly agent: Agent
  readonly stop: AbortSignal
}

/** Asks again and again until the proxy is gone: streams and whole answers, words and tool calls. */
async function loadWorker(load: Load): Promise<void> {
  for (let turn = 0; !load.stop.aborted; turn += 1) {
    const stream = (load.index + turn) % 3 !== 0
    const content = (load.index + turn) % 2 === 0 ? 'Talk.' : 'Act.'
    const body = {
      model: 'scripted-hermes',
      stream,
      tools: [shellTool],
      messages: [{ role: 'user', content }],
      turn: `${load.index}/${turn}`,
    }
    try {
      await oneCall(load, body, stream)
    } catch {
      return
    }
  }
}

async function oneCall(load: Load, body: object, stream: boolean): Promise<void> {
  const out = httpRequest(`${load.url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${load.key}` },
    agent: load.agent,
  })
  out.end(JSON.stringify(body))
  const [response] = (await once(out, 'response')) as [IncomingMessage]
  const callId = String(response.headers['x-request-id'])
  load.journal.write({ callId, acted: null })
  let text = ''
  let told = false
  for await (const chunk of response) {
    text += String(chunk)
    if (!stream || told || !/"finish_reason":"\w/.test(text)) continue
    told = true
    load.journal.write({ callId, acted: readEvents(text) })
  }
  if (!stream) load.journal.write({ callId, acted: readWhole(text) })
}

function readWhole(text: string): Seen['acted'] {
  const message = JSON.parse(text).choices[0].message
  const calls: { function: { arguments: string } }[] = message.tool_calls ?? []
  return { content: message.content ?? '', tools: calls.map((call) => call.function.arguments) }
}

function readEvents(text: string): Seen['acted'] {
  let content = ''
  const tools: string[] = []
  for (const event of payloads(text.slice(0, text.lastIndexOf('\n\n') + 2))) {
    const [choice] = event['choices'] as {
      delta: { content?: string; tool_calls?: { index: number; function: { arguments?: string } }[] }
    }[]
    content += choice?.delta.content ?? ''
    for (const call of choice?.delta.tool_calls ?? []) {
      tools[call.index] = (tools[call.index] ?? '') + (call.function.arguments ?? '')
    }
  }
  return { content, tools }
}
