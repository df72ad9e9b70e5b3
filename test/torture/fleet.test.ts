/**
 * Three replicas behind one proxy under 32 clients, while replicas and the proxy are killed and started again, weights
 * change in all three modes and generation is paused. The replicas' journals are the judge.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readFileSync } from 'node:fs'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { buildRows, fsck, openReader, openStore, type SessionLog } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { words } from '../fleet/support.ts'
import { payloads, script, shellTool } from '../proxy/support.ts'
import { randomFrom } from './random.ts'
import { sized } from './size.ts'

const seed = 20_261_121
const kills = sized(50, 15)
const clients = 32

interface Line {
  readonly kind: string
  readonly requestId: string
  readonly promptTokenIds: readonly number[]
  readonly choices: readonly {
    readonly tokenIds: readonly number[]
    readonly logprobs: readonly number[]
    readonly finishReason: string
    readonly weightVersions: readonly { readonly version: string; readonly start: number; readonly end: number }[]
  }[]
}

/** A finished answer as a client got it. */
interface Seen {
  readonly callId: string
  readonly content: string
  readonly tools: readonly string[]
}

interface Target {
  readonly child: ChildProcess
  readonly sessions: readonly { readonly id: string; readonly key: string; readonly url: string }[]
}

let directory: string
const engines: { port: string; child: ChildProcess; ready: Promise<void> }[] = []
const random = randomFrom(seed)
let weights = 'w0'

beforeAll(async () => {
  directory = tempDir()
  for (let index = 0; index < 3; index += 1) await startEngine(index, '0')
})
afterAll(async () => {
  for (const { child } of engines) child.kill('SIGKILL')
})

it(
  `seed ${seed}: every answer is as the journals have it, after ${kills} kills`,
  { timeout: Math.max(900_000, kills * 30_000) },
  async () => {
    const seen: Seen[] = []
    const sessions: string[] = []
    const stop = new AbortController()
    const current: { target: Target } = { target: await startProxy() }
    sessions.push(...current.target.sessions.map(({ id }) => id))
    const workers = Array.from({ length: clients }, (_, index) => client(index, current, stop.signal, seen))
    const done = { replicas: 0, proxies: 0, updates: 0, pauses: 0 }
    for (let round = 0; done.replicas + done.proxies < kills; round += 1) {
      await sleep(50 + random() * 250)
      const dice = random()
      if (dice < 0.35) {
        await killReplica(Math.floor(random() * 3))
        done.replicas += 1
      } else if (dice < 0.5) {
        current.target.child.kill('SIGKILL')
        await once(current.target.child, 'exit')
        done.proxies += 1
        current.target = await startProxy()
        sessions.push(...current.target.sessions.map(({ id }) => id))
      } else if (dice < 0.85) {
        const [mode, cache] = pick([
          ['drain', 'clear'],
          ['keep', 'clear'],
          ['keep', 'keep'],
          ['abort-resubmit', 'clear'],
          ['abort-resubmit', 'clear'],
        ] as const)
        const next = `w${round + 1}`
        const order = { mode, cache, timeoutMs: 5000, version: next, requests: [] }
        const outcome = await tell(current.target, { what: 'weights', order })
        if (outcome !== null) {
          weights = next
          done.updates += 1
        }
      } else {
        const mode = pick(['drain', 'keep', 'abort-resubmit'] as const)
        const paused = await tell(current.target, { what: 'pause', order: { mode, cache: 'clear', timeoutMs: 5000 } })
        if (paused !== null) done.pauses += 1
        await sleep(random() * 100)
        await tell(current.target, { what: 'resume' })
      }
    }
    stop.abort()
    await Promise.all(workers)
    await tell(current.target, { what: 'close' })
    current.target.child.kill('SIGKILL')
    await (await openStore(join(directory, 'data'))).close()

    const lines = readJournals()
    const reader = await openReader(join(directory, 'data'))
    const logs = new Map<string, SessionLog>()
    for (const id of sessions) logs.set(id, await reader.recorder.session(id))
    await reader.close()
    const judged = judge(seen, logs, lines)
    console.log(JSON.stringify({ seed, ...done, answers: seen.length, ...judged }))
    expect(done.updates).toBeGreaterThan(5)
    expect(judged.resubmitted).toBeGreaterThan(0)
    expect(seen.length).toBeGreaterThan(kills)
    for (const log of logs.values()) expectTrainedOnce(log)
    expect((await fsck(join(directory, 'data'))).problems).toEqual([])
  },
)

/** Every finished answer is in the store, is the one that was given, and consists of legs that a replica generated. */
function judge(
  seen: readonly Seen[],
  logs: ReadonlyMap<string, SessionLog>,
  lines: ReadonlyMap<string, readonly Line[]>,
): { readonly resubmitted: number; readonly mixed: number } {
  const calls = new Map([...logs.values()].flatMap((log) => log.calls.map((call) => [call.intent.id, { call, log }])))
  let resubmitted = 0
  let mixed = 0
  for (const { callId, content, tools } of seen) {
    const found = calls.get(callId)
    const choice = found?.call.commit?.choices[0]
    if (found === undefined || choice === undefined) throw new Error(`the answer ${callId} is not in the store`)
    const message = JSON.parse(choice.message)
    expect(message.content ?? '').toBe(content)
    expect(
      (message.tool_calls ?? []).map((call: { function: { arguments: string } }) => call.function.arguments),
    ).toEqual(tools)
    const segment = found.log.segments.find(({ id }) => id === choice.segmentId)
    if (segment === undefined) throw new Error(`the answer ${callId} has no ids`)
    const prompt = segment.parent === null ? [] : path(found.log, segment.parent.segmentId, segment.parent.offset)
    const legs = chain(prompt, [...segment.tokens], lines.get(callId) ?? [])
    if (legs === null) throw new Error(`no replica generated the answer ${callId}`)
    if (legs.length > 1) resubmitted += 1
    const logprobs = legs.flatMap(({ leg, taken }) => (leg.choices[0]?.logprobs ?? []).slice(0, taken))
    expect([...(segment.logprobs ?? [])]).toEqual(logprobs.map((value) => Math.fround(value)))
    const versions = legs.flatMap(({ leg, taken }) => versionsOf(leg).slice(0, taken))
    for (const span of segment.policySpans) {
      const sampledBy = new Set(versions.slice(span.start, span.end))
      if (span.mixing === 'mixed') mixed += 1
      else expect([...sampledBy], `${callId} [${span.start}, ${span.end})`).toEqual([span.policy.weightVersion])
      // The token route tells versions token by token: nothing is left to be unsure of.
      if (found.call.intent.strategy === 'splice') expect(span.mixing).not.toBe('mixed')
    }
    expect(segment.policySpans.at(-1)?.end).toBe(segment.tokens.length)
  }
  return { resubmitted, mixed }
}

/** Legs that together are exactly these tokens behind this prompt. A leg that was cut off may have drawn more. */
function chain(
  prompt: readonly number[],
  tokens: readonly number[],
  lines: readonly Line[],
): { readonly leg: Line; readonly taken: number }[] | null {
  if (tokens.length === 0) return []
  for (const leg of lines) {
    if (!same(leg.promptTokenIds, prompt)) continue
    const [choice] = leg.choices
    const drawn = choice?.tokenIds ?? []
    const whole = drawn.length > 0 && same(drawn, tokens.slice(0, drawn.length))
    if (!whole) continue
    const rest = chain([...prompt, ...drawn], tokens.slice(drawn.length), lines)
    if (rest !== null) return [{ leg, taken: drawn.length }, ...rest]
  }
  return null
}

function versionsOf(leg: Line): string[] {
  return (leg.choices[0]?.weightVersions ?? []).flatMap(({ version, start, end }) =>
    Array.from({ length: end - start }, () => version),
  )
}

/** No token is trained in two rows, and each is in one bucket. */
function expectTrainedOnce(log: SessionLog): void {
  const { rows } = buildRows(log, { rolloutId: 'r', groupId: 'g', taskDigest: 'd' })
  const trained = new Set<string>()
  for (const row of rows) {
    for (const segment of row.segments) {
      for (let at = segment.start; at < segment.end; at += 1) {
        if (row.mask[at] !== 1) continue
        const token = `${segment.segmentId}/${at - segment.start}`
        expect(trained.has(token)).toBe(false)
        trained.add(token)
      }
    }
  }
}

function path(log: SessionLog, id: string, offset: number): number[] {
  const segment = log.segments.find((one) => one.id === id)
  if (segment === undefined) throw new Error(`no segment ${id}`)
  const before = segment.parent === null ? [] : path(log, segment.parent.segmentId, segment.parent.offset)
  return [...before, ...segment.tokens.subarray(0, offset)]
}

/** Generations by the call that asked for them: `chatcmpl-<call>`, `generate-tokens-<call>`, `….<leg>`. */
function readJournals(): ReadonlyMap<string, readonly Line[]> {
  const byCall = new Map<string, Line[]>()
  for (let index = 0; index < 3; index += 1) {
    for (const text of readFileSync(journalOf(index), 'utf8').split('\n')) {
      if (!text.includes('"kind":"generation"')) continue
      const line = JSON.parse(text) as Line
      const callId = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(line.requestId)?.[0] ?? ''
      byCall.set(callId, [...(byCall.get(callId) ?? []), line])
    }
  }
  return byCall
}

function same(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((id, at) => id === other[at])
}

// --------------------------------------------------------------------------------------------------- the cast

const journalOf = (index: number): string => join(directory, `engine-${index}.jsonl`)

async function startEngine(index: number, port: string): Promise<void> {
  const flags = [
    '--port',
    port,
    '--tokens-per-second',
    '150',
    '--weight-version',
    weights,
    '--journal',
    journalOf(index),
  ]
  const child = spawn(process.execPath, ['engine/src/main.ts', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const { url } = JSON.parse(String(line)) as { url: string }
  for (const scripts of [
    script('Talk.', [{ say: `${words}, ${words}` }]),
    script('Act.', [{ shell: words }, { say: 'Done.' }]),
  ]) {
    await fetch(`${url}/control/scripts`, { method: 'POST', body: JSON.stringify(scripts) })
  }
  engines[index] = { port: new URL(url).port, child, ready: Promise.resolve() }
}

/** One at a time is away; it comes back with the weights of now, or with older ones. */
async function killReplica(index: number): Promise<void> {
  await Promise.all(engines.map(({ ready }) => ready))
  const engine = engines[index]
  if (engine === undefined) return
  engine.child.kill('SIGKILL')
  await once(engine.child, 'exit')
  // A line that was being written when it died has no end.
  appendFileSync(journalOf(index), '\n')
  engine.ready = startEngine(index, engine.port)
}

async function startProxy(): Promise<Target> {
  const urls = engines.map(({ port }) => `http://127.0.0.1:${port}`)
  const child = spawn(process.execPath, ['test/kill/fleet-runner.ts', join(directory, 'data'), ...urls], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const [line] = await once(createInterface({ input: child.stdout ?? process.stdin }), 'line')
  return { child, ...(JSON.parse(String(line)) as Pick<Target, 'sessions'>) }
}

/** Null where it was refused: a replica was away, a pause did not end in time. */
async function tell(target: Target, order: object): Promise<unknown> {
  const answer = once(target.child, 'message')
  target.child.send(order)
  const [said] = (await answer) as [{ readonly outcome?: unknown }]
  return said.outcome === undefined ? null : (said.outcome ?? true)
}

async function client(index: number, current: { target: Target }, stop: AbortSignal, seen: Seen[]): Promise<void> {
  const agent = new Agent({ keepAlive: true })
  for (let turn = 0; !stop.aborted; turn += 1) {
    const { target } = current
    const session = target.sessions[index % target.sessions.length]
    if (session === undefined) return
    const stream = (index + turn) % 3 !== 0
    const content = (index + turn) % 2 === 0 ? 'Talk.' : 'Act.'
    const body = {
      model: 'scripted-hermes',
      messages: [{ role: 'user', content }],
      tools: [shellTool],
      stream,
      metadata: { turn: `${index}/${turn}` },
    }
    try {
      const answer = await call(session, body, agent)
      if (answer !== null) seen.push(answer)
    } catch {
      // The proxy is gone; the next one is waited for.
      while (current.target === target && !stop.aborted) await sleep(20)
    }
  }
  agent.destroy()
}

/** Null for an answer that is an error or broke off. */
async function call(
  session: { readonly url: string; readonly key: string },
  body: { readonly stream: boolean },
  agent: Agent,
): Promise<Seen | null> {
  const headers = { authorization: `Bearer ${session.key}`, 'content-type': 'application/json' }
  const out = httpRequest(`${session.url}/chat/completions`, { method: 'POST', headers, agent })
  out.end(JSON.stringify(body))
  const [response] = (await once(out, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += String(chunk)
  const callId = String(response.headers['x-request-id'])
  if (response.statusCode !== 200) return null
  if (!body.stream) {
    const { message } = JSON.parse(text).choices[0]
    const tools = (message.tool_calls ?? []).map((one: { function: { arguments: string } }) => one.function.arguments)
    return { callId, content: message.content ?? '', tools }
  }
  if (!text.includes('data: [DONE]')) return null
  let content = ''
  const tools: string[] = []
  for (const event of payloads(text)) {
    const [choice] = (event['choices'] ?? []) as {
      delta: { content?: string; tool_calls?: { index: number; function: { arguments?: string } }[] }
    }[]
    content += choice?.delta.content ?? ''
    for (const part of choice?.delta.tool_calls ?? []) {
      tools[part.index] = (tools[part.index] ?? '') + (part.function.arguments ?? '')
    }
  }
  return { callId, content, tools }
}

function pick<T>(list: readonly T[]): T {
  const one = list[Math.floor(random() * list.length)]
  if (one === undefined) throw new Error('nothing to pick from')
  return one
}
