/** An engine that becomes another one behind its URL: what is recorded names the one that answered. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { freePort } from '../../scripts/free-port.ts'
import type { EngineFingerprint } from '../../src/core/index.ts'
import { type EngineAdapter, sglangEngine, vllmEngine } from '../../src/proxy/index.ts'
import { fingerprintDigest, type SessionLog } from '../../src/trajectory/index.ts'
import { hello, startEngine, startProxy, type TestProxy } from './support.ts'

/** A proxy that learns what its engine is. */
async function learningProxy(
  engine: EngineAdapter,
): Promise<TestProxy & { readonly stored: Map<string, EngineFingerprint> }> {
  const stored = new Map<string, EngineFingerprint>()
  const paddock = await startProxy(engine.url, {
    engine,
    putFingerprint: async (fingerprint) => {
      const digest = fingerprintDigest(fingerprint)
      stored.set(digest, fingerprint)
      return digest
    },
  })
  return { ...paddock, stored }
}

const kindsOf = (log: SessionLog) =>
  log.segments.filter(({ origin }) => origin === 'sampled').map((one) => one.logprobKind)
const changesOf = ({ events }: TestProxy) =>
  events.flatMap((event) => (event.type === 'engine' && event.what === 'changed' ? [event.detail] : []))

describe('an engine that is started again as another one', () => {
  it.each([
    {
      wire: 'vllm',
      adapter: vllmEngine,
      before: ['--logprobs-mode', 'raw_logprobs'],
      after: ['--logprobs-mode', 'processed_logprobs', '--vllm-version', '0.33.0'],
      kinds: ['raw', 'processed'],
      versions: ['0.32.0', '0.33.0'],
    },
    {
      // It tells its version and not what its logprobs are of: that is found out by asking.
      wire: 'sglang',
      adapter: sglangEngine,
      before: ['--logprobs-mode', 'temperature_logprobs'],
      after: ['--logprobs-mode', 'raw_logprobs', '--sglang-version', '0.5.17'],
      kinds: ['temperature', 'raw'],
      versions: ['0.5.16', '0.5.17'],
    },
  ] as const)('$wire: calls behind it carry its version and the kind of its logprobs', async (given) => {
    const port = String(await freePort())
    const first = await startEngine('--wire', given.wire, '--port', port, ...given.before)
    await using paddock = await learningProxy(given.adapter({ url: first.url }))
    const session = await paddock.open()
    expect((await session.post(hello)).status).toBe(200)
    await first.stop()
    const second = await startEngine('--wire', given.wire, '--port', port, ...given.after)
    try {
      expect((await session.post({ ...hello, seed: 1 })).status).toBe(200)
      await paddock.proxy.drain()
      const log = await session.log()
      expect(kindsOf(log)).toEqual(given.kinds)
      expect(log.calls.map(({ intent }) => paddock.stored.get(intent.fingerprint ?? '')?.version)).toEqual(
        given.versions,
      )
      expect(log.calls.map(({ commit }) => commit?.findings)).toEqual([[], []])
      const [change, ...others] = changesOf(paddock)
      expect(others).toEqual([])
      expect(change).toContain(`version ${given.versions.join(' -> ')}`)
      expect(change).toContain(`logprobKind ${given.kinds.join(' -> ')}`)
    } finally {
      await second.stop()
    }
  })

  it('is found out where nobody listened for a while, though it tells the same of itself', async () => {
    const port = String(await freePort())
    const first = await startEngine('--wire', 'sglang', '--port', port, '--logprobs-mode', 'temperature_logprobs')
    await using paddock = await learningProxy(sglangEngine({ url: first.url }))
    const session = await paddock.open()
    await session.post(hello)
    await first.stop()
    expect((await session.post({ ...hello, seed: 1 })).status).toBe(502)
    const second = await startEngine('--wire', 'sglang', '--port', port, '--logprobs-mode', 'raw_logprobs')
    try {
      await session.post({ ...hello, seed: 2 })
      expect(kindsOf(await session.log())).toEqual(['temperature', 'raw'])
      expect(changesOf(paddock)).toEqual(['logprobKind temperature -> raw'])
    } finally {
      await second.stop()
    }
  })
})

describe('an engine that comes back with other token routes', () => {
  const away = { strategies: ['splice', 'record'], findings: [[], []] }
  it.each([
    { before: [], after: ['--no-scale-out'], ...away, said: ['derender', 'none'] },
    {
      before: ['--no-scale-out'],
      after: [],
      strategies: ['record', 'splice'],
      findings: [[], []],
      said: ['none', 'derender'],
    },
    // It tells the same of itself: only its renders show it.
    {
      before: [],
      after: ['--bad-render', 'opens-turns'],
      ...away,
      findings: [[], ['splice_void']],
      said: ['derender', 'void'],
    },
  ])('$said: sessions take what it can do now', async ({ before, after, strategies, findings, said }) => {
    const port = String(await freePort())
    const first = await startEngine('--port', port, ...before)
    await using paddock = await learningProxy(vllmEngine({ url: first.url }))
    const auto = { policy: { strategy: 'auto' as const } }
    const session = await paddock.open(auto)
    expect((await session.post(hello)).status).toBe(200)
    await first.stop()
    const second = await startEngine('--port', port, ...after)
    try {
      // Its connection is gone: this call is the one that finds out.
      expect((await session.post({ ...hello, seed: 1 })).status).toBe(200)
      const later = await paddock.open(auto)
      expect((await later.post({ ...hello, seed: 2 })).status).toBe(200)
      await paddock.proxy.drain()
      const calls = [...(await session.log()).calls.slice(0, 1), ...(await later.log()).calls]
      expect(calls.map(({ intent }) => intent.strategy)).toEqual(strategies)
      expect(calls.map(({ commit }) => commit?.findings)).toEqual(findings)
      expect(changesOf(paddock).at(-1)).toBe(`token routes ${said.join(' -> ')}`)
    } finally {
      await second.stop()
    }
  })
})

describe('an engine that changes while a call runs', () => {
  it('voids the answer, which nobody can say who sampled', async () => {
    let version = '1'
    const held: ServerResponse[] = []
    const server = createServer((request, response) => {
      const routes: Record<string, object> = { '/version': { version }, '/v1/models': { data: [{ id: 'm' }] } }
      const found = routes[request.url ?? '']
      if (found !== undefined || request.url !== '/v1/chat/completions') {
        response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' })
        response.end(JSON.stringify(found ?? {}))
        return
      }
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks)
        // A question to die of, again and again.
        if (body.includes('Die.')) return void response.destroy()
        // What logprobs are of is not to be found out here.
        if (body.includes('"top_logprobs":5')) return void response.writeHead(400).end('{}')
        held.push(response)
        server.emit('asked')
      })
    })
    await using paddock = await learningProxy(vllmEngine({ url: await listen(server) }))
    const session = await paddock.open()
    const asked = once(server, 'asked')
    const running = session.post(hello)
    await asked
    version = '2'
    const dead = await session.post({ ...hello, messages: [{ role: 'user', content: 'Die.' }] })
    expect(dead.status).toBe(502)
    held[0]?.writeHead(200, { 'content-type': 'application/json' })
    held[0]?.end(
      JSON.stringify({
        prompt_token_ids: [1],
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: 'a' },
            token_ids: [2],
            logprobs: { content: [{ token: 'a', logprob: -1 }] },
            finish_reason: 'stop',
          },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 1 },
      }),
    )
    expect((await running).status).toBe(200)
    const [call] = (await session.log()).calls
    expect(call?.commit?.findings).toEqual(['engine_changed'])
    expect(changesOf(paddock)).toEqual(['version 1 -> 2'])
    server.close()
    server.closeAllConnections()
  })
})

it('asks again behind new weights, and says nothing where nothing changed', async () => {
  const engine = await startEngine()
  try {
    const vllm = vllmEngine({ url: engine.url })
    let asked = 0
    const counted: EngineAdapter = {
      ...vllm,
      learn: (how) => {
        asked += 1
        return vllm.learn(how)
      },
    }
    await using paddock = await learningProxy(counted)
    const session = await paddock.open()
    await session.post(hello)
    expect(asked).toBe(1)
    await paddock.proxy.updateWeights({ mode: 'drain', cache: 'clear', timeoutMs: 300_000, version: '7', requests: [] })
    await session.post({ ...hello, seed: 1 })
    await paddock.proxy.drain()
    expect(asked).toBe(2)
    const log = await session.log()
    expect(new Set(log.calls.map(({ intent }) => intent.fingerprint)).size).toBe(1)
    expect(log.calls.map(({ commit }) => commit?.findings)).toEqual([[], []])
    expect(changesOf(paddock)).toEqual([])
  } finally {
    await engine.stop()
  }
})

it.each([
  { wire: 'vllm', adapter: vllmEngine, used: [1, 1, 0, 1], pinned: 0.5 },
  // It does not tell where its defaults come from: what is not known is not claimed.
  { wire: 'sglang', adapter: sglangEngine, used: [null, null, null, null], pinned: 0.5 },
] as const)('$wire: what it samples with unasked is stored where it tells', async ({ wire, adapter, used, pinned }) => {
  const engine = await startEngine('--wire', wire)
  try {
    await using paddock = await learningProxy(adapter({ url: engine.url }))
    const session = await paddock.open()
    await session.post(hello)
    const [call] = (await session.log()).calls
    const { temperature, topP, minP, repetitionPenalty } = call?.intent.used ?? {}
    expect([temperature, topP, minP, repetitionPenalty]).toEqual(used)
    expect(call?.intent.asked.temperature).toBeNull()
    const other = await paddock.open({ policy: { pin: { temperature: pinned } } })
    await other.post(hello)
    expect((await other.log()).calls[0]?.intent.used.temperature).toBe(pinned)
  } finally {
    await engine.stop()
  }
})

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
}
