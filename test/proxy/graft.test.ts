/** A harness that resumed its session: what it says of the past gives way to what was recorded, or it is told that it is lost. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SessionPast } from '../../src/proxy/index.ts'
import type { SessionLog } from '../../src/trajectory/index.ts'
import { model } from './harnesses.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { startProxy, type TestEngine, type TestProxy } from './support.ts'

let engine: TestEngine
let paddock: TestProxy
beforeAll(async () => {
  engine = await useEngine()
  paddock = await startProxy(engine.url)
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

const marker = 'fork-0123456789abcdef'
const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
const system = (day: string) => ({ role: 'system', content: `You are an agent. Today is ${day}.` })
const user = (content: string) => ({ role: 'user', content })
const said = (content: string) => ({ role: 'assistant', content })
const past = [system('Monday'), user('Begin.'), said('Begun.'), user('Next.')]

type Session = Awaited<ReturnType<TestProxy['open']>>
async function ask(session: Session, body: object): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await session.post({ model, max_tokens: 8, ...body })
  return { status: answer.status, text: await answer.text() }
}

async function parentLog(): Promise<SessionLog> {
  const session = await paddock.open({})
  await ask(session, { messages: past.slice(0, 2), tools })
  await ask(session, { messages: past, tools })
  await paddock.proxy.closeSession(session.id)
  return session.log()
}

async function childOf(log: SessionLog, onDivergence: SessionPast['onDivergence']) {
  const kept: string[] = []
  const keep = async (bytes: Uint8Array) => `digest ${kept.push(Buffer.from(bytes).toString())}`
  const until = log.calls[1]?.intent.id ?? ''
  const graft = { marker, keep }
  const about = { log, ancestors: [log.session], until, onDivergence, by: 'given' as const, graft }
  return { session: await paddock.open({ past: about }), kept }
}

/** The next day; a filler of the program's own; the marker; what came since. */
const resumed = (...since: object[]) => [
  system('Tuesday'),
  ...past.slice(1, 3),
  said('No response.'),
  user(marker),
  ...since,
]
const bodiesOf = ({ calls }: SessionLog) =>
  calls.map(
    ({ intent }) => (JSON.parse(Buffer.from(intent.body).toString()) as { readonly messages: object[] }).messages,
  )

it('reads each request with the recorded past, keeps what was sent, and asks titles without the marker', async () => {
  const parent = await parentLog()
  const { session, kept } = await childOf(parent, 'refuse')
  const title = [user(`Write a title for: ${marker} please`)]
  const since = [said('On.'), user('More.')]
  for (const body of [
    { messages: resumed(), tools },
    { messages: [system('a title'), ...title] },
    { messages: resumed(...since), tools },
  ]) {
    expect(await ask(session, body)).toMatchObject({ status: 200 })
  }
  const log = await session.log()
  expect(bodiesOf(log).slice(1)).toEqual([
    past,
    [system('a title'), user('Write a title for:  please')],
    [...past, ...since],
  ])
  const ids = async (of: SessionLog, at: number) => (await engine.generation(of.calls[at]?.intent.id)).promptTokenIds
  expect(await ids(log, 1)).toEqual(await ids(parent, 1))
  expect(log.events.flatMap((event) => (event.kind === 'replay' ? [event.phase] : []))).toEqual(['answered', 'arrived'])
  expect(kept.map((text) => text.includes(marker))).toEqual([true, true, true])
  expect(log.events.filter(({ kind }) => kind === 'grafted')).toHaveLength(3)
})

it('a call of the conversation without the marker is refused, or goes its own way where that is asked for', async () => {
  const parent = await parentLog()
  const compacted = { messages: [system('Tuesday'), user('What was done: it begun.')], tools }
  const { session } = await childOf(parent, 'refuse')
  expect(await ask(session, { messages: resumed(), tools })).toMatchObject({ status: 200 })
  expect(await ask(session, compacted)).toMatchObject({
    status: 400,
    text: expect.stringContaining('GRAFT_LOST') as string,
  })
  expect(paddock.proxy.sessionStats(session.id)).toMatchObject({ taints: ['GRAFT_LOST'], lastError: 'GRAFT_LOST' })
  const { session: other } = await childOf(parent, 'branch')
  expect(await ask(other, compacted)).toMatchObject({ status: 200 })
  const log = await other.log()
  expect(bodiesOf(log).at(-1)).toEqual(compacted.messages)
  expect(log.events.flatMap((event) => (event.kind === 'replay' ? [event.phase] : []))).toEqual([
    'answered',
    'graft_lost',
  ])
})

it('other tools than then are a divergence, named', async () => {
  const { session } = await childOf(await parentLog(), 'refuse')
  const answer = await ask(session, {
    messages: resumed(),
    tools: [...tools, { ...tools[0], function: { name: 'question' } }],
  })
  expect(answer).toMatchObject({
    status: 400,
    text: expect.stringMatching(/tools\[1\] was.*REPLAY_DIVERGED/s) as string,
  })
})

it('a resumed past without the last results of tools is refused, or gone on from with those that were recorded', async () => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })
  const called = { role: 'assistant', content: null, tool_calls: [call('one'), call('two')] }
  const result = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content })
  const then = [...past.slice(0, 2), called, result('one', 'All.'), result('two', 'Nothing.')]
  const parent = await paddock.open({})
  for (const messages of [past.slice(0, 2), then]) await ask(parent, { messages, tools })
  const log = await parent.log()
  const about = (...results: object[]) => ({ messages: [...then.slice(0, 3), ...results, user(marker)], tools })
  const whole = [result('one', 'All.'), result('two', 'Nothing.')]
  for (const results of [whole.slice(0, 1), [result('one', 'All.'), result('two', 'Interrupted.')]]) {
    const { session } = await childOf(log, 'refuse')
    expect(await ask(session, about(...results))).toMatchObject({
      status: 400,
      text: expect.stringMatching(/does not hold the results of its tools two\b.*GRAFT_LOST/s) as string,
    })
    const { session: other } = await childOf(log, 'branch')
    expect(await ask(other, about(...results))).toMatchObject({ status: 200 })
    const child = await other.log()
    expect(bodiesOf(child).at(-1)).toEqual(then)
    expect(child.events.flatMap((event) => (event.kind === 'replay' ? [event.phase] : []))).toEqual([
      'answered',
      'graft_lost',
      'arrived',
    ])
  }
  const { session } = await childOf(log, 'refuse')
  expect(await ask(session, about(...whole.toReversed()))).toMatchObject({ status: 200 })
})
