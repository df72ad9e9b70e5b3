import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sglangEngine } from '../../src/proxy/index.ts'
import { startProxy, type TestEngine, type TestProxy, type TestSession } from '../proxy/support.ts'
import {
  ask,
  converse,
  expectFaithful,
  findings,
  forks,
  profiles,
  reserialised,
  rows,
  startScripted,
  ways,
} from './support.ts'

const both = ['Tidy the höuse.', 'And now the cellar.'] as const

describe.each(profiles)('splice on %s, SGLang', (model) => {
  let engine: TestEngine
  let paddock: TestProxy
  beforeAll(async () => {
    engine = await startScripted(model, '--wire', 'sglang')
    paddock = await startProxy(engine.url, { engine: sglangEngine({ url: engine.url, streamsIds: true }) })
  })
  afterAll(async () => {
    await paddock[Symbol.asyncDispose]()
  })

  const open = (): Promise<TestSession> => paddock.open({ policy: { strategy: 'splice', history: 'sampled' } })

  it.each(ways)('one row, no fork: %s', async (_name, habits) => {
    const session = await open()
    await converse(session, both, { model, ...habits })
    const log = await session.log()
    expect(log.calls.length).toBeGreaterThan(4)
    expect(new Set(log.calls.map((call) => call.intent.strategy))).toEqual(new Set(['splice']))
    expect(findings(log)).toEqual([])
    expect(forks(log)).toEqual([])
    expect(rows(log)).toBe(1)
    await expectFaithful(log, engine)
  })
})

/** Servers and routers whose chat route drops what it does not know: ids go in by `/generate`. */
describe.each(['scripted-hermes', 'scripted-qwen', 'scripted-llama'])('splice by generate and parsers, %s', (model) => {
  it.each(ways.filter((_way, at) => [0, 3, 5].includes(at)))('one row, no fork: %s', async (_name, habits) => {
    const engine = await startScripted(model, '--wire', 'sglang', '--no-chat-ids')
    await using paddock = await startProxy(engine.url, { engine: sglangEngine({ url: engine.url }) })
    const session = await paddock.open({ policy: { strategy: 'splice', history: 'sampled' } })
    await converse(session, both, { model, ...habits })
    const log = await session.log()
    expect(log.calls.length).toBeGreaterThan(4)
    expect([findings(log), forks(log), rows(log)]).toEqual([[], [], 1])
    await expectFaithful(log, engine)
  })
})

it('learns how turns end for each way of opening them', async () => {
  const engine = await startScripted('scripted-hermes', '--wire', 'sglang')
  await using paddock = await startProxy(engine.url, { engine: sglangEngine({ url: engine.url, streamsIds: true }) })
  for (const more of [{}, { reasoning_effort: 'none' }, { chat_template_kwargs: { enable_thinking: false } }]) {
    const session = await paddock.open({ policy: { strategy: 'splice', history: 'sampled' } })
    await converse(session, both, { model: 'scripted-hermes', echo: reserialised, more })
    const log = await session.log()
    expect([findings(log), forks(log), rows(log)]).toEqual([[], [], 1])
    await expectFaithful(log, engine)
  }
})

describe('SGLang, where it cannot be spliced', () => {
  it('asks the chat route for what only that can make a grammar of', async () => {
    const engine = await startScripted('scripted-qwen', '--wire', 'sglang', '--no-chat-ids')
    await using paddock = await startProxy(engine.url, { engine: sglangEngine({ url: engine.url }) })
    const session = await paddock.open({ policy: { strategy: 'auto' } })
    const message = await ask(session, [{ role: 'user', content: both[0] }], {
      model: 'scripted-qwen',
      more: { tool_choice: 'required' },
    })
    expect(message['tool_calls']).toHaveLength(1)
    // A tool choice without ids: the findings say what is missing, and nothing is invented.
    expect(findings(await session.log())).toEqual(expect.arrayContaining(['missing_ids', 'splice_unavailable']))
  })

  it('splice is refused where the engine has no routes for it, auto records', async () => {
    const engine = await startScripted('scripted-qwen', '--wire', 'sglang', '--sglang-version', '0.5.12.post1')
    await using paddock = await startProxy(engine.url, {
      engine: sglangEngine({ url: engine.url, version: '0.5.12.post1' }),
    })
    await expect(paddock.open({ policy: { strategy: 'splice' } })).rejects.toMatchObject({ code: 'ENGINE_INCAPABLE' })
    const session = await paddock.open({ policy: { strategy: 'auto' } })
    await ask(session, [{ role: 'user', content: both[0] }], { model: 'scripted-qwen' })
    const log = await session.log()
    expect(log.calls[0]?.intent.strategy).toBe('record')
    expect(findings(log)).toEqual(['missing_ids', 'missing_prompt_ids'])
  })
})
