/** Forks at a call beside which others were open, and whose connection breaks. */
import { once } from 'node:events'
import { request } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildRows, type SessionLog } from '../../src/trajectory/index.ts'
import { model } from './harnesses.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { script, startProxy, type TestEngine, type TestProxy, type TestSession } from './support.ts'

let engine: TestEngine
let paddock: TestProxy
beforeAll(async () => {
  engine = await useEngine()
  await engine.control('/scripts', script('Begin.', [{ say: 'one two three four five six' }]))
  paddock = await startProxy(engine.url)
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

const toolNamed = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })
const system = (content: string) => ({ role: 'system', content })
const begin = { role: 'user', content: 'Begin.' }
const agent = { model, tools: [toolNamed('look')] }
const first = { ...agent, messages: [system('You are an agent.'), begin] }
const second = {
  ...agent,
  messages: [...first.messages, { role: 'assistant', content: 'Begun.' }, { role: 'user', content: 'Next.' }],
}
const title = { model, max_tokens: 20, messages: [system('Write titles.'), { role: 'user', content: 'A title.' }] }
const subagent = {
  model,
  tools: [toolNamed('find')],
  messages: [system('You search.'), { role: 'user', content: 'Find.' }],
}

const textOf = async (answer: ReturnType<TestSession['post']>) => {
  const answered = await answer
  expect(answered.status).toBe(200)
  const { choices } = JSON.parse(await answered.text()) as { choices: readonly { message: { content: string } }[] }
  return choices[0]?.message.content
}

/** Resolves when so many calls of a session have begun. */
async function begun(session: TestSession, count: number): Promise<void> {
  while ((await session.log()).calls.length < count) await nextTurn()
}

/** Ends the stall. */
const goOn = () => fetch(`${engine.url}/control/faults`, { method: 'DELETE' })

const pastOf = (log: SessionLog, until: string | undefined) => {
  return { log, ancestors: [log.session], until: until ?? 'none', onDivergence: 'refuse' as const }
}
const sampled = ({ segments }: SessionLog) =>
  segments.reduce((sum, { origin, tokens }) => sum + (origin === 'sampled' ? tokens.length : 0), 0)
const trained = (log: SessionLog) =>
  buildRows(log, {
    rolloutId: 'r',
    groupId: 'g',
    taskDigest: 't',
    trainClasses: ['main', 'subagent', 'title', 'other'],
  })
    .rows.flatMap(({ mask }) => [...mask])
    .reduce((sum, bit) => sum + bit, 0)
const phasesOf = ({ events }: SessionLog) =>
  events.flatMap((event) => (event.kind === 'replay' ? [[event.phase, event.of] as const] : []))

describe.each([
  { callClass: 'title', aside: title },
  { callClass: 'subagent', aside: subagent },
])('a call of class $callClass that was open at the call to fork at', ({ callClass, aside }) => {
  async function parentOf(): Promise<{ readonly log: SessionLog; readonly said: string | undefined }> {
    const session = await paddock.open()
    await textOf(session.post(first))
    await engine.fault({ kind: 'stall', at: 'before_first_byte', seconds: 600, match: { session: session.id } })
    const open = textOf(session.post(aside))
    await begun(session, 2)
    await textOf(session.post(second))
    await goOn()
    return { said: await open, log: await session.log() }
  }

  it('is answered as it was where it comes before that, and asked of the engine where it comes later', async () => {
    const { log, said } = await parentOf()
    const [one, beside, at] = log.calls
    expect(log.calls.map(({ intent }) => intent.callClass)).toEqual(['main', callClass, 'main'])
    expect(beside?.commit?.endedAt).toBeGreaterThanOrEqual(at?.commit?.endedAt ?? Infinity)
    for (const isFirst of [true, false]) {
      const session = await paddock.open({ past: pastOf(log, at?.intent.id) })
      await textOf(session.post(first))
      if (isFirst) expect(await textOf(session.post(aside))).toBe(said)
      await textOf(session.post(second))
      if (!isFirst) await textOf(session.post(aside))
      const child = await session.log()
      expect(phasesOf(child)).toEqual([
        ['answered', one?.intent.id],
        ...(isFirst ? [['answered', beside?.intent.id]] : []),
        ['arrived', at?.intent.id],
      ])
      expect(trained(child)).toBe(sampled(child))
      const own = async (of: SessionLog, id: string | undefined) =>
        (await engine.generation(of.calls.find(({ intent }) => intent.id === id)?.intent.id)).promptTokenIds
      const arrived = child.calls.findLast(({ intent }) => intent.callClass === 'main')?.intent.id
      expect(await own(child, arrived)).toEqual(await own(log, at?.intent.id))
    }
  })
})

it.each(['before_first_byte', 'mid_stream'] as const)(
  'a harness whose connection broke at the fork (%s) and that asks again joins its answer',
  async (at) => {
    const parents = await paddock.open()
    for (const body of [first, second]) await textOf(parents.post(body))
    const log = await parents.log()
    const session = await paddock.open({ past: pastOf(log, log.calls[1]?.intent.id) })
    await textOf(session.post(first))
    await engine.fault({ kind: 'stall', at, token: 2, seconds: 600, match: { session: session.id } })
    const body = { ...second, stream: true }
    const headers = { authorization: `Bearer ${session.key}`, 'content-type': 'application/json' }
    const broken = request(`${session.url}/chat/completions`, { method: 'POST', headers, agent: false })
    broken.on('error', () => {})
    broken.end(JSON.stringify(body))
    if (at === 'mid_stream') await once(broken, 'response')
    await begun(session, 2)
    broken.destroy()
    const joining = session.post(body)
    // It has joined once it was given the beginning of the answer; before the first byte nothing tells.
    if (at === 'mid_stream') await joining
    await goOn()
    const again = await joining
    expect([again.status, (await again.text()).includes('[DONE]')]).toEqual([200, true])
    const child = await session.log()
    // Before the first byte the engine may be done while no client is there; the retry is given that answer.
    const ended = at === 'mid_stream' ? 'complete' : expect.stringMatching(/^(?:complete|client_gone)$/)
    expect(child.calls.map(({ commit, superseded }) => [commit?.outcome.kind, superseded])).toEqual([
      ['complete', false],
      [ended, false],
    ])
    expect(phasesOf(child).map(([phase]) => phase)).toEqual(['answered', 'arrived'])
    expect(trained(child)).toBe(sampled(child))
  },
)
