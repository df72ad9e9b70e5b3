/** Two real vLLM under one fleet: one is killed with SIGKILL in the middle of streamed answers, and comes back. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { vllmEngine } from '../../src/proxy/index.ts'
import { buildRows, type SessionLog } from '../../src/trajectory/index.ts'
import { type RawAnswer, startProxy, type TestProxy, type TestSession } from '../proxy/support.ts'
import { cache, type RealServer, startVllm } from './vllm.ts'

const model = 'llama3-tiny'
const rowOptions = { rolloutId: 'r', groupId: 'g', taskDigest: 't' }

type Message = { readonly role: 'user' | 'assistant'; readonly content: string }
interface Said {
  readonly choices: readonly { readonly message: { readonly content: string } }[]
}

describe.skipIf(cache === '')('one of two vLLM 0.32.0 killed while it streams', () => {
  const servers: RealServer[] = []
  const sessions: TestSession[] = []
  const told: Message[][] = []
  const streams: { status: number; text: string; cut: boolean }[] = []
  const logs: SessionLog[] = []
  const homes: (string | undefined)[] = []
  let paddock: TestProxy
  let states: readonly string[]
  let back: readonly string[]
  let after: readonly number[]

  beforeAll(async () => {
    servers.push(...(await Promise.all([startVllm(model), startVllm(model)])))
    const [first, second] = servers.map(({ url }) => vllmEngine({ url }))
    if (first === undefined || second === undefined) throw new Error('no servers')
    const fleet = { healthMs: 200, ejectMs: 200 }
    paddock = await startProxy(first.url, { engine: first, replicas: [second], fleet })
    for (let index = 0; index < 4; index += 1) {
      const policy = { strategy: index < 2 ? ('record' as const) : ('splice' as const), history: 'sampled' as const }
      const session = await paddock.open({ policy })
      const messages: Message[] = [{ role: 'user', content: `Tell of place ${index}.` }]
      const before = requests(paddock)
      const answer = await say(session, messages)
      const now = requests(paddock)
      homes.push(servers[now.findIndex((count, place) => count > (before[place] ?? 0))]?.url)
      messages.push({ role: 'assistant', content: answer }, { role: 'user', content: 'And then?' })
      sessions.push(session)
      told.push(messages)
    }
    // All four stream at once, and two of them lose their engine behind their first events.
    const long = { model, max_tokens: 160, temperature: 1, stream: true, ignore_eos: true }
    const open = await Promise.all(sessions.map((session, at) => session.post({ ...long, messages: told[at] })))
    const begun = open.map((answer) => new Promise<void>((resolve) => answer.response.once('readable', resolve)))
    await Promise.all(begun)
    await servers[1]?.kill()
    streams.push(...(await Promise.all(open.map(whole))))
    await paddock.event((event) => event.type === 'engine' && event.what === 'ejected')
    states = paddock.proxy.engineStatus().replicas.map(({ state }) => state)
    for (const [at, session] of sessions.entries()) await say(session, told[at] ?? [])
    const port = Number(new URL(servers[1]?.url ?? '').port)
    servers[1] = await startVllm(model, [], { port })
    await paddock.event((event) => event.type === 'engine' && event.what === 'readmitted')
    back = paddock.proxy.engineStatus().replicas.map(({ state }) => state)
    const before = requests(paddock)
    for (let index = 0; index < 2; index += 1) {
      const session = await paddock.open()
      await say(session, [{ role: 'user', content: 'Anybody there?' }])
      sessions.push(session)
    }
    after = requests(paddock).map((count, place) => count - (before[place] ?? 0))
    for (const session of sessions) logs.push(await session.log())
  })
  afterAll(async () => {
    await paddock?.[Symbol.asyncDispose]()
    for (const server of servers) await server[Symbol.asyncDispose]()
  })

  it('the harness of its streams sees an error, and those of the other go on to their ends', () => {
    expect(new Set(homes).size).toBe(2)
    for (const [at, { status, text }] of streams.entries()) {
      expect(status).toBe(200)
      const lost = homes[at] === servers[1]?.url
      expect(text.includes('ENGINE_DIED')).toBe(lost)
      expect(text.includes('[DONE]')).toBe(!lost)
    }
  })

  it('the record says it: a failed call, a taint, and no token of it trains', () => {
    const taints = paddock.events.filter(({ type }) => type === 'taint')
    expect(taints).toHaveLength(homes.filter((home) => home === servers[1]?.url).length)
    for (const [at, log] of logs.slice(0, 4).entries()) {
      const lost = homes[at] === servers[1]?.url
      const [, second] = log.calls
      expect(second?.commit?.outcome.kind).toBe(lost ? 'engine_error' : 'complete')
      const { rows } = buildRows(log, rowOptions)
      const trained = rows.flatMap((row) => [...row.mask]).filter((bit) => bit === 1).length
      const sampled = log.calls
        .filter(({ commit }) => commit?.outcome.kind === 'complete')
        .flatMap(({ commit }) => commit?.choices ?? [])
        .map(({ segmentId }) => log.segments.find(({ id }) => id === segmentId)?.tokens.length ?? 0)
      expect(trained).toBe(sampled.reduce((sum, tokens) => sum + tokens, 0))
    }
  })

  it('its sessions go on with the other one, and nothing is found wrong with their ids', () => {
    expect(states).toEqual(['serving', 'ejected'])
    for (const { calls } of logs.slice(0, 4)) {
      expect(calls).toHaveLength(3)
      expect(calls[2]?.commit).toMatchObject({ outcome: { kind: 'complete' }, findings: [] })
    }
  })

  it('comes back at its address and takes calls', () => {
    expect(back).toEqual(['serving', 'serving'])
    expect(after[1]).toBeGreaterThan(0)
  })
})

const requests = (paddock: TestProxy): readonly number[] =>
  paddock.proxy.engineStatus().replicas.map((replica) => replica.requests)

async function say(session: TestSession, messages: readonly Message[]): Promise<string> {
  const answer = await session.post({ model, messages, max_tokens: 16, temperature: 1 })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`)
  return (JSON.parse(text) as Said).choices[0]?.message.content ?? ''
}

/** What came of a stream, and whether it broke off. */
async function whole({ response, status }: RawAnswer): Promise<{ status: number; text: string; cut: boolean }> {
  let text = ''
  try {
    for await (const chunk of response) text += String(chunk)
    return { status, text, cut: false }
  } catch {
    return { status, text, cut: true }
  }
}
