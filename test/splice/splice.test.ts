import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { script, startProxy, type TestEngine, type TestProxy, type TestSession } from '../proxy/support.ts'
import { converse, expectFaithful, findings, forks, profiles, rows, startScripted, ways } from './support.ts'

const both = ['Tidy the höuse.', 'And now the cellar.'] as const

describe.each(profiles)('splice on %s', (model) => {
  let engine: TestEngine
  let paddock: TestProxy
  beforeAll(async () => {
    engine = await startScripted(model)
    paddock = await startProxy(engine.url)
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

  it('tells text and each of several calls as events of their own, however many tokens a step had', async () => {
    const steps = [{ say: 'First I look.' }, { parallel: [{ shell: 'ls' }, { shell: 'date' }, { shell: 'id' }] }]
    await engine.control('/scripts', script('Look around.', steps))
    const session = await open()
    const messages = await converse(session, ['Look around.'], { model, stream: true })
    expect(messages.flatMap(({ tool_calls }) => tool_calls ?? [])).toHaveLength(3)
    const log = await session.log()
    expect(findings(log)).toEqual([])
    expect(rows(log)).toBe(1)
    await expectFaithful(log, engine)
  })
})
