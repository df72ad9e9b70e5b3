import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startProxy, type TestEngine, type TestProxy } from '../proxy/support.ts'
import { converse, expectFaithful, forks, type Habits, profiles, reserialised, rows, startScripted } from './support.ts'

const both = ['Tidy the höuse.', 'And now the cellar.'] as const

/** What a harness does to an answer on its way back, and the causes that this may have on some template. */
const cases: readonly (readonly [string, Omit<Habits, 'model'>, readonly string[]])[] = [
  ['echoed as given', {}, ['think_stripped', 'template']],
  ['streamed', { stream: true }, ['think_stripped', 'template']],
  ['re-serialised', { echo: reserialised }, ['think_stripped', 'json_reserialised', 'template']],
  [
    'a user between the turns',
    { observe: (turn) => [{ role: 'user', content: `Go on (${turn}).` }] },
    ['think_stripped', 'template'],
  ],
  ['cut at max_tokens', { more: { max_tokens: 6 } }, ['truncated', 'think_stripped', 'template']],
]

describe.each(profiles)('record on %s', (model) => {
  let engine: TestEngine
  let paddock: TestProxy
  beforeAll(async () => {
    engine = await startScripted(model)
    paddock = await startProxy(engine.url)
  })
  afterAll(async () => {
    await paddock[Symbol.asyncDispose]()
  })

  it.each(cases)('each fork has a cause that can be: %s', async (_name, habits, causes) => {
    const session = await paddock.open()
    await converse(session, both, { model, ...habits })
    const log = await session.log()
    expect(forks(log).filter((cause) => !causes.includes(cause))).toEqual([])
    expect(rows(log)).toBe(1 + forks(log).length)
    await expectFaithful(log, engine)
  })

  it('other tokens for the same text are a boundary that merged', async () => {
    const session = await paddock.open()
    await engine.fault({ kind: 'non_canonical', match: { session: session.id } })
    await converse(session, ['Tell me a story.'], { model, more: { tools: [] } })
    const log = await session.log()
    const first = log.calls[0]?.commit?.choices[0]
    const messages = [
      { role: 'system', content: 'Take care.' },
      { role: 'user', content: 'Tell me a story.' },
      JSON.parse(first?.message ?? 'null'),
      { role: 'user', content: 'Thanks.' },
    ]
    await (await session.post({ model, messages, tools: [] })).text()
    // Where the prompt itself opens the thinking, leaving that out comes before any token of the answer.
    const cause = model === 'scripted-qwen3-thinking' ? 'think_stripped' : 'boundary_merge'
    expect(forks(await session.log())).toEqual([cause])
  })
})
