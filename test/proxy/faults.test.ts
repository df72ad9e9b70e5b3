/** Which ends of a call are the agent's own doing, and which taint its rollout until a retry is answered (invariant I7). */
import { request as httpRequest } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { callFaultsOf } from '../../src/trajectory/index.ts'
import { type CallEnd, startToll, type Toll } from '../lab/toll.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { useStore } from '../fixtures/use-store.ts'
import { hello, startProxy, type TestEngine, type TestProxy, type TestSession } from './support.ts'

let engine: TestEngine
let toll: Toll
let paddock: TestProxy
/** Milliseconds that the proxy's clock is ahead. */
let ahead = 0
const clock = { now: () => Date.now(), monotonic: () => performance.now() + ahead }

beforeAll(async () => {
  engine = await useEngine()
  toll = await startToll(engine.url)
  paddock = await startProxy(toll.url, { clock })
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
  await toll[Symbol.asyncDispose]()
})
afterEach(() => toll.next())

const says = (status: number, error: object): CallEnd => ({ kind: 'answer', status, body: JSON.stringify({ error }) })
const asked = { ...hello, temperature: 3, max_tokens: 9 }
const taintsOf = (session: TestSession, of = paddock) => of.proxy.sessionStats(session.id).taints

/** Both witnesses: what the process knows, and what its log says. */
async function expectTaints(session: TestSession, causes: readonly string[]): Promise<void> {
  expect(taintsOf(session)).toEqual(causes)
  expect(callFaultsOf(await session.log()).causes).toEqual(causes)
}

/** Asks, and hangs up once the engine was asked and `until` holds; `sees`: once the first bytes have come too. */
async function leave(
  session: TestSession,
  {
    body = asked,
    sees = false,
    until = () => undefined,
  }: { body?: object; sees?: boolean; until?: () => unknown } = {},
): Promise<void> {
  const out = httpRequest(`${session.url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${session.key}` },
    agent: false,
  })
  out.on('error', () => undefined)
  const seen = new Promise((resolve) => {
    out.on('response', (response) => response.on('error', () => undefined).on('data', resolve))
  })
  out.end(JSON.stringify(body))
  await toll.came(1)
  if (sees) await seen
  await until()
  const closed = new Promise((resolve) => out.once('close', resolve))
  out.destroy()
  await closed
}

const later = () => {
  ahead += 5000
}

const overflow =
  "This model's maximum context length is 64 tokens. However, you requested 80 tokens (71 in the messages, 9 in the completion)."
const pydantic = (field: string) =>
  `[{'type': 'less_than_equal', 'loc': ('body', '${field}'), 'msg': 'Input should be less than or equal to 2', 'input': 3}]`

describe('the agent did it itself', () => {
  it.each([
    ['vLLM: the context is full', says(400, { message: overflow, type: 'BadRequestError' })],
    ['the context is full, as 422', says(422, { message: overflow })],
    ['llama.cpp: the context is full', says(400, { message: 'no room', type: 'exceed_context_size_error' })],
    ['OpenAI: the context is full', says(400, { message: 'no room', code: 'context_length_exceeded' })],
    [
      'a body that is too large',
      { kind: 'answer', status: 413, type: 'text/html', body: '<h1>413 Request Entity Too Large</h1>' },
    ],
    ['a member by `param`', says(400, { message: 'bad', param: 'temperature' })],
    ['a part of a member by `param`', says(400, { message: 'bad', param: 'messages[0].content' })],
    ['a member in a sentence', says(422, { message: 'temperature must be at most 2, got 3' })],
    ['a member by its location, in Python', says(400, { message: pydantic('temperature') })],
    [
      'a member by its location, in JSON',
      { kind: 'answer', status: 422, body: '{"detail":[{"loc":["body","temperature"],"msg":"too large"}]}' },
    ],
    [
      'turns in an order that the template refuses',
      says(400, { message: 'Conversation roles must alternate user/assistant/user' }),
    ],
    ['the bound under its other name', says(400, { message: 'max_completion_tokens must be at least 10, got 9' })],
  ] satisfies [string, CallEnd][])('%s', async (_what, end) => {
    const session = await paddock.open()
    toll.next(end)
    const refused = await session.post(asked)
    expect(refused.status).toBe('status' in end ? end.status : null)
    await refused.text()
    await expectTaints(session, [])
  })

  it('leaves while bytes arrive', async () => {
    const session = await paddock.open({ policy: { onDisconnect: 'abort' } })
    toll.next({ kind: 'stall' })
    const ended = paddock.event((event) => event.type === 'call' && event.sessionId === session.id)
    await leave(session, { body: { ...asked, stream: true }, sees: true })
    await ended
    await expectTaints(session, [])
  })
})

describe('the agent did not do it', () => {
  it.each([
    ['400 without a reason', says(400, { message: 'bad request' }), 'ENGINE_ERROR'],
    ['400 about a member that nobody wrote', says(400, { message: 'top_k must be positive' }), 'ENGINE_ERROR'],
    [
      '400 about a member of Paddock',
      says(400, { message: 'logprobs must be off', param: 'logprobs' }),
      'ENGINE_ERROR',
    ],
    [
      '400 about two members, one of Paddock',
      says(400, { message: pydantic('temperature') + pydantic('return_token_ids') }),
      'ENGINE_ERROR',
    ],
    ['a full context, said with another status', says(404, { message: overflow }), 'ENGINE_ERROR'],
    [
      'a named member, said with another status',
      says(404, { message: 'no such model', param: 'model' }),
      'ENGINE_ERROR',
    ],
    ['422 without a reason', says(422, { message: 'unprocessable' }), 'ENGINE_ERROR'],
    ['413 without a reason', says(413, { message: 'no' }), 'ENGINE_ERROR'],
    ...[
      401, 402, 403, 405, 406, 408, 409, 410, 418, 423, 424, 425, 429, 451, 499, 500, 501, 502, 503, 504, 520, 529, 599,
    ].map((status): [string, CallEnd, string] => [`${status}`, says(status, { message: 'no' }), 'ENGINE_ERROR']),
    [
      'an answer of llama.cpp that it cannot read',
      says(500, { message: 'Failed to parse input at pos 12: <tool' }),
      'ENGINE_UNPARSED',
    ],
    [
      'an answer in another format',
      says(500, { message: 'The model produced output that does not match the expected peg-native format' }),
      'ENGINE_UNPARSED',
    ],
    ['an answer of another parser', says(400, { message: 'failed to parse the output' }), 'ENGINE_UNPARSED'],
    ['a redirection', { kind: 'answer', status: 302, body: '' }, 'ENGINE_ERROR'],
    ['nothing at all', { kind: 'answer', status: 200, body: '' }, 'ENGINE_ERROR'],
    ['a page', { kind: 'answer', status: 200, type: 'text/html', body: '<h1>Welcome</h1>' }, 'ENGINE_ERROR'],
    ['a connection that breaks', { kind: 'reset' }, 'ENGINE_DIED'],
    ['an answer that breaks off', { kind: 'cut', after: 40 }, 'ENGINE_DIED'],
  ] satisfies [string, CallEnd, string][])(
    '%s taints until a retry is answered, marked or not',
    async (_what, end, cause) => {
      const session = await paddock.open()
      toll.next(end, end)
      await (await session.post(asked)).text()
      await expectTaints(session, [cause])
      await (await session.post(asked)).text()
      await expectTaints(session, [cause, cause])
      expect(await (await session.post(asked)).text()).toContain('"finish_reason"')
      await expectTaints(session, [])
      // Another request is no retry.
      toll.next(end)
      await (await session.post(asked)).text()
      await (await session.post({ ...asked, temperature: 1 })).text()
      await expectTaints(session, [cause])
      expect((await session.log()).calls.map(({ intent }) => intent.retryOf === null)).toEqual([
        true,
        false,
        false,
        true,
        true,
      ])
    },
  )

  it.each(['record', 'splice'] as const)('half a JSON text is a fault of the engine (%s)', async (strategy) => {
    const session = await paddock.open({ policy: { strategy } })
    toll.next({ kind: 'answer', status: 200, body: '{"id":"a","choices":[{"index":0,"mess' })
    const answer = await session.post(asked)
    expect([answer.status, JSON.parse(await answer.text()).error.code]).toEqual([502, 'ENGINE_ERROR'])
    await expectTaints(session, ['ENGINE_ERROR'])
  })

  it('the answer of a sibling that was asked before the fault lifts nothing', async () => {
    const session = await paddock.open()
    const held = Promise.withResolvers<void>()
    toll.next({ kind: 'pass', behind: held.promise }, says(429, { message: 'full' }))
    const sibling = session.post(asked)
    await toll.came(1)
    await (await session.post(asked)).text()
    held.resolve()
    expect(await (await sibling).text()).toContain('"finish_reason"')
    await expectTaints(session, ['ENGINE_ERROR'])
  })

  it.each(['finish', 'abort'] as const)(
    'gives a silent engine up (%s), until it comes back for the answer',
    async (onDisconnect) => {
      const session = await paddock.open({ policy: { onDisconnect } })
      toll.next({ kind: 'silence' })
      const told = paddock.event((event) => event.type === 'taint' && event.sessionId === session.id)
      await leave(session, { until: later })
      await told
      await expectTaints(session, ['ENGINE_TIMEOUT'])
      if (onDisconnect === 'finish') return
      await (await session.post(asked)).text()
      await expectTaints(session, [])
    },
  )

  it('gives up an engine that falls silent in mid-stream', async () => {
    const session = await paddock.open({ policy: { onDisconnect: 'abort' } })
    toll.next({ kind: 'stall' })
    const told = paddock.event((event) => event.type === 'taint' && event.sessionId === session.id)
    await leave(session, { body: { ...asked, stream: true }, sees: true, until: later })
    await told
    await expectTaints(session, ['ENGINE_TIMEOUT'])
  })
})

describe('Paddock did it', () => {
  it('has no place for the call', async () => {
    await using small = await startProxy(toll.url, { limits: { maxInFlight: 1, maxQueued: 0 } })
    const session = await small.open()
    toll.next({ kind: 'silence' })
    const left = Promise.withResolvers<void>()
    const waits = leave(session, { body: { ...asked, seed: 1 }, until: () => left.promise })
    await toll.came(1)
    const refused = await session.post(asked)
    expect([refused.status, JSON.parse(await refused.text()).error.code]).toEqual([503, 'PROXY_OVERLOADED'])
    expect(taintsOf(session, small)).toEqual(['PROXY_OVERLOADED'])
    left.resolve()
    await waits
  })

  it('is stopped and started: the retry after that lifts the fault, and without a retry it stays', async () => {
    const store = await useStore()
    const revives = () => true
    const first = await startProxy(toll.url, { recorder: store.recorder, revives })
    const [back, gone] = [await first.open(), await first.open()]
    toll.next({ kind: 'silence' }, { kind: 'silence' })
    const hung = [back, gone].map((session) => session.post(asked))
    await toll.came(2)
    await first.proxy.close()
    for (const answer of hung) expect((await answer).status).toBe(503)
    await using second = await startProxy(toll.url, { recorder: store.recorder, revives })
    const answer = await fetch(`${back.url.replace(first.origin, second.origin)}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${back.key}` },
      body: JSON.stringify(asked),
    })
    expect(answer.status).toBe(200)
    await answer.text()
    expect(taintsOf(back, second)).toEqual([])
    expect(callFaultsOf(await store.recorder.session(back.id)).causes).toEqual([])
    expect(callFaultsOf(await store.recorder.session(gone.id)).causes).toEqual(['PROXY_DRAINING'])
  })
})

it('a call that failed through no fault of the agent spends none of its budget', async () => {
  const session = await paddock.open({ policy: { budget: { maxCalls: 2, maxSampledTokens: null, maxWallMs: null } } })
  const busy = says(429, { message: 'full' })
  toll.next(busy, { kind: 'pass' }, busy, { kind: 'pass' })
  const statuses: number[] = []
  for (const body of [asked, asked, hello, hello, { ...hello, seed: 1 }]) {
    const answer = await session.post(body)
    await answer.text()
    statuses.push(answer.status)
  }
  expect(statuses).toEqual([429, 200, 429, 200, 429])
  expect(paddock.proxy.sessionStats(session.id)).toMatchObject({ taints: [], lastError: 'BUDGET_EXHAUSTED' })
})
