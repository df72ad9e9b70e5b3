/** Proxies in processes of their own behind one listener: whose request it is, whatever way it comes. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ShardSet } from '../../src/cli/node/shard-set.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { hello, script, type TestEngine } from './support.ts'

interface Opened {
  readonly id: string
  readonly key: string
  readonly url: string
}

const program = fileURLToPath(new URL('shards.fixture.ts', import.meta.url))
const stop = new AbortController()
const started: { readonly child: ChildProcess; readonly said: Interface }[] = []
let engine: TestEngine
let directory: string
let origin: string
let ended: Promise<number>
let sessions: readonly (readonly Opened[])[]
let again = Promise.withResolvers<string>()

beforeAll(async () => {
  directory = tempDir()
  engine = await useEngine()
  await engine.control('/scripts', script('Say hello.', [{ say: 'one two three four five six' }]))
  const ready = Promise.withResolvers<string>()
  ended = ShardSet.run({
    host: '127.0.0.1',
    port: 0,
    shards: 2,
    start: (index) => {
      const child = fork(program, [`${index + 1}/2`, engine.url, join(directory, String(index))], {
        stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
      })
      if (child.stdout === null) throw new Error('no output')
      started[index] = { child, said: createInterface({ input: child.stdout }) }
      return child
    },
    again: (index, signal) => again.resolve(`${index} ${signal}`),
    ready: ready.resolve,
    signal: stop.signal,
  })
  origin = await ready.promise
  sessions = await Promise.all([0, 1].map((index) => ask<readonly Opened[]>(index, { open: 8 })))
})
afterAll(async () => {
  stop.abort()
  expect(await ended).toBe(0)
})

/** What a shard says to an order, one at a time. */
async function ask<T>(index: number, order: object): Promise<T> {
  const shard = started[index]
  if (shard === undefined) throw new Error(`no shard ${index}`)
  const line = once(shard.said, 'line') as Promise<[string]>
  shard.child.stdin?.write(`${JSON.stringify(order)}\n`)
  return JSON.parse((await line)[0]) as T
}

const outcomes = (index: number, { id }: Opened): Promise<readonly (string | null)[]> => ask(index, { calls: id })

function of(index: number, at: number): Opened {
  const session = sessions[index]?.[at]
  if (session === undefined) throw new Error(`no session ${at} of shard ${index}`)
  return session
}

/** A call on a connection of the agent; the body is left to the caller. */
function begin(agent: Agent | false, key: string | null, headers: Record<string, string> = {}): ClientRequest {
  const authorization: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` }
  return request(`${origin}/v1/chat/completions`, {
    method: 'POST',
    agent,
    headers: { 'content-type': 'application/json', ...authorization, ...headers },
  })
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

async function answerTo(out: ClientRequest): Promise<{ readonly status: number; readonly text: string }> {
  const [response] = (await once(out, 'response')) as [IncomingMessage]
  return { status: response.statusCode ?? 0, text: await textOf(response) }
}

async function call(agent: Agent | false, key: string | null, more: object = {}) {
  const out = begin(agent, key)
  out.end(JSON.stringify({ ...hello, ...more }))
  return answerTo(out)
}

it('requests of many sessions, interleaved on one connection, each reach the shard that has the session', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const connections = new Set<unknown>()
  for (let turn = 0; turn < 3; turn += 1) {
    for (const session of [of(0, 0), of(1, 0), of(1, 1), of(0, 1)]) {
      const out = begin(agent, session.key)
      out.once('socket', (socket) => connections.add(socket))
      out.end(JSON.stringify({ ...hello, stream: turn === 1 }))
      const { status, text } = await answerTo(out)
      expect([status, text]).toEqual([200, expect.stringContaining(turn === 1 ? '[DONE]' : 'one two three')])
    }
  }
  expect(connections.size).toBe(1)
  agent.destroy()
  for (const [index, at] of [
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ] as const) {
    expect(await outcomes(index, of(index, at))).toHaveLength(3)
  }
})

it('a key in any of its headers, and the URL of a session, lead to the same shard', async () => {
  for (const index of [0, 1]) {
    const { key, url } = of(index, 2)
    for (const headers of [{ authorization: `bearer  ${key}` }, { 'x-api-key': key }, { 'x-goog-api-key': key }]) {
      expect((await fetch(`${url}/models`, { headers })).status).toBe(200)
      expect((await fetch(`${origin}/v1/models`, { headers })).status).toBe(200)
    }
  }
})

it('a head that comes byte by byte, or in two parts wherever it is split, is the same request', async () => {
  const { key } = of(1, 3)
  const body = JSON.stringify(hello)
  const head = (route: string, more = '') =>
    `${route} HTTP/1.1\r\nhost: paddock\r\nAUTHORIZATION:Bearer ${key}\r\n${more}connection: close\r\n\r\n`
  const models = head('GET /v1/models')
  const parts = Array.from({ length: models.length - 1 }, (_, at) => [models.slice(0, at + 1), models.slice(at + 1)])
  const whole = head('POST /v1/chat/completions', `content-length: ${body.length}\r\n`) + body
  for (const [sent, wanted] of [
    [Array.from(whole), 'one two three'],
    ...parts.map((pair) => [pair, 'scripted-hermes'] as const),
    // Behind the head, where its connection is on its way to the shard.
    ...Array.from(
      { length: 30 },
      () => [[whole.slice(0, -body.length), ...Array.from(body)], 'one two three'] as const,
    ),
  ] as const) {
    const socket = connect({ port: Number(new URL(origin).port), host: '127.0.0.1', noDelay: true })
    for (const part of sent) {
      socket.write(part)
      // The front is in this process: it has read the part by then.
      await nextTurn()
      await nextTurn()
    }
    const chunks: Buffer[] = []
    for await (const chunk of socket) chunks.push(chunk as Buffer)
    const answer = Buffer.concat(chunks).toString()
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer).toContain(wanted)
  }
  expect(await outcomes(1, of(1, 3))).toHaveLength(31)
})

it('an unknown key, none, and two of them are refused as without shards', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (const key of ['pdk_nobody', 'pdk_none', 'x', null]) {
    const { status, text } = await call(agent, key)
    expect([status, JSON.parse(text).error.code]).toEqual([401, 'AUTH_KEY_UNKNOWN'])
  }
  const two = begin(agent, of(0, 0).key, { 'x-api-key': of(1, 0).key })
  two.end(JSON.stringify(hello))
  const { status, text } = await answerTo(two)
  expect([status, JSON.parse(text).error.code]).toEqual([403, 'AUTH_KEY_MISMATCH'])
  const upgrade = begin(agent, of(1, 0).key, { upgrade: 'websocket', connection: 'upgrade' })
  upgrade.end()
  const refused = await answerTo(upgrade)
  expect(JSON.parse(refused.text).error.code).toBe('STREAM_UPGRADE_REFUSED')
  agent.destroy()
})

it('long bodies, chunked ones and those behind 100-continue come whole, on given connections and passed on', async () => {
  // Most of it is on its way when the head is read.
  const long = JSON.stringify(hello) + ' '.repeat(3_000_000)
  for (const first of [0, 1]) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (const index of [first, 1 - first]) {
      const { key } = of(index, 4)
      const plain = begin(agent, key, { 'content-length': String(long.length) })
      plain.end(long)
      expect((await answerTo(plain)).status).toBe(200)
      const chunked = begin(agent, key)
      for (let at = 0; at < long.length; at += 500_000) chunked.write(long.slice(at, at + 500_000))
      chunked.end()
      expect((await answerTo(chunked)).status).toBe(200)
      const expecting = begin(agent, key, { expect: '100-continue', 'content-length': String(long.length) })
      expecting.flushHeaders()
      await once(expecting, 'continue')
      expecting.end(long)
      expect((await answerTo(expecting)).status).toBe(200)
    }
    // More than a body may have, passed on: it is told, and the connection is no use any more.
    const most = begin(agent, of(1 - first, 4).key, { 'content-length': String(2 ** 31) })
    most.write('{')
    const [told] = (await once(most, 'response')) as [IncomingMessage]
    expect([told.statusCode, told.headers.connection]).toEqual([413, 'close'])
    most.destroy()
    agent.destroy()
  }
  for (const index of [0, 1]) expect(await outcomes(index, of(index, 4))).toHaveLength(6)
})

it('a client that goes in the middle of a stream ends its call, also where the stream is passed on', async () => {
  for (const first of [0, 1]) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    expect((await call(agent, of(first, 5).key)).status).toBe(200)
    const { id, key } = of(1, 6)
    await engine.fault({ kind: 'stall', at: 'mid_stream', token: 3, seconds: 600, match: { session: id } })
    const before = (await outcomes(1, of(1, 6))).length
    const out = begin(agent, key)
    out.end(JSON.stringify({ ...hello, stream: true }))
    const [response] = (await once(out, 'response')) as [IncomingMessage]
    await once(response, 'data')
    response.on('error', () => undefined)
    out.destroy()
    for (;;) {
      const now = await outcomes(1, of(1, 6))
      if (now.length === before || now.at(-1) === null) continue
      expect(now.at(-1)).toBe('client_gone')
      break
    }
    agent.destroy()
    await fetch(`${engine.url}/control/faults`, { method: 'DELETE' })
  }
})

it('a shard that is killed takes its own sessions alone, is told as away, and is started again', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 2 })
  const { id, key } = of(0, 7)
  expect((await call(agent, key)).status).toBe(200)
  await engine.fault({ kind: 'stall', at: 'mid_stream', token: 3, seconds: 600, match: { session: id } })
  const going = begin(agent, key)
  going.end(JSON.stringify({ ...hello, stream: true }))
  const [response] = (await once(going, 'response')) as [IncomingMessage]
  const text = textOf(response)
  // On a connection of the first shard.
  const beside = new Agent({ keepAlive: true, maxSockets: 1 })
  expect((await call(beside, of(0, 6).key)).status).toBe(200)
  expect((await call(beside, of(1, 7).key)).status).toBe(200)

  again = Promise.withResolvers()
  started[1]?.child.kill('SIGKILL')
  expect(await again.promise).toBe('1 SIGKILL')
  const away = await call(beside, of(1, 7).key)
  expect([away.status, JSON.parse(away.text).error.code]).toEqual([503, 'SHARD_AWAY'])
  // A fresh connection waits for it: its sessions of before are over.
  const back = await call(false, of(1, 7).key)
  expect([back.status, JSON.parse(back.text).error.code]).toEqual([401, 'AUTH_KEY_UNKNOWN'])
  const [fresh] = await ask<readonly Opened[]>(1, { open: 1 })
  for (const one of [agent, beside, false] as const) expect((await call(one, fresh?.key ?? '')).status).toBe(200)

  await fetch(`${engine.url}/control/faults`, { method: 'DELETE' })
  expect(await text).toContain('[DONE]')
  expect(await outcomes(0, of(0, 7))).toHaveLength(2)
  agent.destroy()
  beside.destroy()
})
