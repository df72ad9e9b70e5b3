/** Logprobs of given ids: what was recorded is what the engine says of the same ids again. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openaiEngine, type ProxyOptions, sglangEngine, vllmEngine } from '../../src/proxy/index.ts'
import { buildRows, type SessionLog } from '../../src/trajectory/index.ts'
import { chat, sameTools, tidyScript } from './harnesses.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { startProxy, type TestEngine, type TestProxy } from './support.ts'

const rowsOf = (log: SessionLog) => buildRows(log, { rolloutId: 'r', groupId: 'g', taskDigest: 't' }).rows

describe.each([
  { wire: 'vllm', model: 'scripted-hermes', adapter: vllmEngine },
  { wire: 'vllm', model: 'scripted-qwen3-thinking', adapter: vllmEngine },
  { wire: 'vllm', model: 'scripted-llama', adapter: vllmEngine },
  { wire: 'sglang', model: 'scripted-hermes', adapter: sglangEngine },
])('$model as $wire', ({ wire, model, adapter }) => {
  let engine: TestEngine
  let paddock: TestProxy
  beforeAll(async () => {
    engine = await useEngine('--wire', wire, '--model', model)
    await engine.control('/scripts', tidyScript)
    const own: Partial<ProxyOptions> = { engine: adapter({ url: engine.url }) }
    paddock = await startProxy(engine.url, own)
  })
  afterAll(async () => {
    await paddock[Symbol.asyncDispose]()
  })

  it('what was sampled has its recorded logprobs again', async () => {
    const session = await paddock.open()
    await chat(session, { stream: false, tools: sameTools, model })
    const rows = rowsOf(await session.log())
    expect(rows.length).toBeGreaterThan(0)
    const scores = await paddock.proxy.scoreIds({ sequences: rows.map(({ tokens }) => tokens), ifVersion: null })
    for (const [at, row] of rows.entries()) {
      const scored = scores.logprobs[at] ?? []
      expect(scored).toHaveLength(row.tokens.length)
      expect(scored[0]).toBeNull()
      for (const [place, bit] of row.mask.entries()) {
        if (bit === 1) expect(scored[place]).toBeCloseTo(row.logprobs[place] ?? Number.NaN, 5)
        else if (place > 0) expect(scored[place]).toBeLessThanOrEqual(0)
      }
    }
    // Nothing of it is a call of the session, and other ids are less likely.
    expect((await session.log()).calls).toHaveLength(4)
    const [row] = rows
    const first = row?.mask.indexOf(1) ?? 0
    const other = Int32Array.from(row?.tokens ?? [])
    other[first] = (other[first] ?? 0) - 1
    const { logprobs } = await paddock.proxy.scoreIds({ sequences: [other], ifVersion: null })
    expect(logprobs[0]?.[first]).toBeLessThan(row?.logprobs[first] ?? 0)
  })

  it('lists that cannot be of the ids asked are refused', async () => {
    const fault = wire === 'vllm' ? { kind: 'wrong_usage', by: 1 } : { kind: 'null_logprobs' }
    await engine.fault({ ...fault, times: 1 })
    const asked = { sequences: [Int32Array.from([5, 6, 7])], ifVersion: null }
    await expect(paddock.proxy.scoreIds(asked)).rejects.toMatchObject({ code: 'ENGINE_UNTRUSTED' })
  })
})

it('other weights than asked for are refused, also in a pause', async () => {
  const engine = await useEngine()
  const paddock = await startProxy(engine.url)
  try {
    const sequences = [Int32Array.from([5, 6, 7])]
    const { weightVersion } = await paddock.proxy.scoreIds({ sequences, ifVersion: null })
    await expect(paddock.proxy.scoreIds({ sequences, ifVersion: weightVersion })).resolves.toMatchObject({
      weightVersion,
    })
    const refused = { code: 'SCORE_REFUSED' }
    await expect(paddock.proxy.scoreIds({ sequences, ifVersion: 'nothing like it' })).rejects.toMatchObject(refused)
    await paddock.proxy.pauseEngine({ mode: 'drain', cache: 'clear', timeoutMs: 300_000 })
    await expect(paddock.proxy.scoreIds({ sequences, ifVersion: null })).rejects.toMatchObject(refused)
    await paddock.proxy.resumeEngine()
    await expect(paddock.proxy.scoreIds({ sequences, ifVersion: null })).resolves.toMatchObject({ weightVersion })
  } finally {
    await paddock[Symbol.asyncDispose]()
  }
})

it('an engine without a route for it is refused by name', async () => {
  const engine = await useEngine('--wire', 'openai')
  const paddock = await startProxy(engine.url, { engine: openaiEngine({ url: engine.url }) })
  try {
    const asked = { sequences: [Int32Array.from([5, 6])], ifVersion: null }
    await expect(paddock.proxy.scoreIds(asked)).rejects.toMatchObject({ code: 'ENGINE_INCAPABLE' })
  } finally {
    await paddock[Symbol.asyncDispose]()
  }
})
