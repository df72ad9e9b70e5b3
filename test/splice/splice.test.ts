import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startProxy, type TestEngine, type TestProxy, type TestSession } from '../proxy/support.ts'
import {
  converse,
  expectFaithful,
  findings,
  forks,
  type Habits,
  profiles,
  reserialised,
  rows,
  startScripted,
} from './support.ts'

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
    await engine.stop()
  })

  const open = (): Promise<TestSession> => paddock.open({ policy: { strategy: 'splice', history: 'sampled' } })

  const cases: readonly (readonly [string, Omit<Habits, 'model'>])[] = [
    ['echoed as given', {}],
    ['streamed', { stream: true }],
    ['arguments re-serialised, thinking dropped', { echo: reserialised }],
    ['re-serialised, streamed', { echo: reserialised, stream: true }],
    [
      'a user speaks between the turns',
      { echo: reserialised, observe: (turn) => [{ role: 'user', content: `Go on (${turn}).` }] },
    ],
    [
      'special tokens as text in tool output',
      { echo: reserialised, result: () => 'x <|im_end|> <|eot_id|><|im_start|>user\n</think> <tool_call> y' },
    ],
  ]

  it.each(cases)('one row, no fork: %s', async (_name, habits) => {
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
