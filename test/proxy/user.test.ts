/** What the user of a task says, simulated by a model behind a proxy of its own, and what becomes of the talk when that model is out. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { EventBody } from '../../src/core/index.ts'
import type { TaskUser } from '../../src/envs/index.ts'
import { createProxy, openaiEngine, type OpenedSession, type Proxy } from '../../src/proxy/index.ts'
import { recordedUser, UserConversation } from '../../src/rollout/user/conversation.ts'
import { playedUser } from '../../src/rollout/user/played.ts'
import { buildRows, openStore, type Store } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

type Message = { readonly role: string; readonly content: string }
type Reply = { readonly content: string | null; readonly refusal?: string; readonly cut?: true } | number

let answer: (messages: readonly Message[]) => Reply
let server: Server
let directory: string
let store: Store
let proxy: Proxy
let listener: Awaited<ReturnType<Proxy['listen']>>
beforeAll(async () => {
  directory = tempDir()
  server = createServer(
    (request, response) =>
      void (async () => {
        const said =
          request.method === 'POST' ? answer(((await json(request)) as { messages: [] }).messages) : { content: '' }
        response.writeHead(typeof said === 'number' ? said : 200, { 'content-type': 'application/json' })
        if (typeof said === 'number') return void response.end('{"error":{"message":"no"}}')
        const { content, refusal, cut } = said
        const message = { role: 'assistant', content, ...(refusal === undefined ? {} : { refusal }) }
        const choices = [{ index: 0, message, finish_reason: cut === true ? 'length' : 'stop' }]
        const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 }
        response.end(JSON.stringify({ id: 'x', object: 'chat.completion', model: 'm', choices, usage }))
      })(),
  )
  await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done))
  store = await openStore(directory)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  proxy = createProxy({ recorder: store.recorder, engine: openaiEngine({ url }) })
  listener = await proxy.listen({ port: 0 })
})
afterAll(async () => {
  await listener.close()
  await proxy.close()
  await store.close()
  server.closeAllConnections()
  server.close()
})

const ada: Extract<TaskUser, { by: 'model' }> = {
  by: 'model',
  way: 'any',
  maxTurns: 3,
  persona: 'Ada, in a hurry.',
  goal: 'A red kettle.',
  temperature: 0,
  maxTokens: 50,
}
const { signal } = new AbortController()

async function talk(
  user: TaskUser,
  work: (conversation: UserConversation, session: OpenedSession | null) => Promise<void>,
): Promise<readonly Extract<EventBody, { kind: 'user_turn' }>[]> {
  const events: EventBody[] = []
  const session = user.by === 'record' ? null : await proxy.openSession({ role: 'user_simulator' })
  const played =
    session === null || user.by === 'record'
      ? null
      : await playedUser(user, {
          baseUrl: session.baseUrl(listener.origin),
          apiKey: session.key,
          model: 'm',
          opening: 'Hello.',
        })
  const player = played ?? recordedUser(user.by === 'record' ? user.replies : [])
  await work(new UserConversation({ user, player, emit: (event) => void events.push(event) }), session)
  await played?.[Symbol.asyncDispose]()
  return events.flatMap((event) => (event.kind === 'user_turn' ? [event] : []))
}

it('a model speaks as the persona: it hears what the agent said, its calls are kept, and none of its tokens can be trained', async () => {
  const seen: (readonly Message[])[] = []
  answer = (messages) => {
    seen.push(messages)
    return { content: messages.length < 4 ? 'The kettle.' : 'Thanks! ###STOP###' }
  }
  const events = await talk(ada, async (conversation, session) => {
    expect(await conversation.hear('Which one?', signal)).toBe('The kettle.')
    expect(await conversation.hear('It is red now.', signal)).toBeNull()
    expect(await conversation.hear('Anything else?', signal)).toBeNull()
    expect(conversation.talk.map(({ by }) => by)).toEqual(['agent', 'user', 'agent'])
    await proxy.closeSession(session?.session.id ?? '')
    const log = await store.recorder.session(session?.session.id ?? '')
    expect(log.calls).toHaveLength(2)
    const built = buildRows(log, { rolloutId: 'r', groupId: 'g', taskDigest: 'd' })
    // No ids came, and the tokens are told by the usage alone: the bucket is the user's all the same.
    expect(built).toMatchObject({ rows: [], outside: { masked: {}, notExported: { user_simulator: 6 } } })
  })
  expect(seen[0]?.map(({ role }) => role)).toEqual(['system', 'user'])
  expect(seen[0]?.[0]?.content).toMatch(/Ada, in a hurry[^]*A red kettle[^]*Hello\./)
  expect(seen[1]?.slice(1)).toEqual([
    { role: 'user', content: 'Which one?' },
    { role: 'assistant', content: 'The kettle.' },
    { role: 'user', content: 'It is red now.' },
  ])
  expect(events).toMatchObject([
    { turn: 1, said: 'Which one?', reply: 'The kettle.', over: null, by: 'model' },
    { turn: 2, reply: null, over: 'left' },
  ])
  const { calls } = await store.recorder.session((await store.recorder.sessions({}))[0]?.id ?? '')
  expect(events.map(({ callId }) => callId)).toEqual(calls.map(({ intent }) => intent.id))
})

it('a model that is out, refuses or says nothing is a fault of infrastructure; one silence is asked again', async () => {
  for (const [reply, why] of [
    [400, /did not answer/],
    [{ content: null, refusal: 'I may not' }, /refused: I may not/],
    [{ content: '  ' }, /said nothing/],
  ] as const) {
    answer = () => reply
    await talk(ada, async (conversation) => {
      const failed = await conversation.hear('Which one?', signal).catch((error: unknown) => error)
      expect(failed).toMatchObject({ code: 'USER_FAILED', family: 'infra', message: expect.stringMatching(why) })
    })
  }
  let asked = 0
  answer = () => ({ content: (asked += 1) === 1 ? '' : 'The ket', cut: true })
  const events = await talk(ada, async (conversation) => {
    expect(await conversation.hear('Which one?', signal)).toBe('The ket')
  })
  expect(events).toMatchObject([{ reply: 'The ket', cut: true }])
})

it('nothing that the agent says brings the model beyond its context, and its turns are bounded', async () => {
  let longest = 0
  answer = (messages) => {
    longest = Math.max(
      longest,
      messages.reduce((sum, { content }) => sum + content.length, 0),
    )
    expect(messages[1]?.role).toBe('user')
    return { content: 'x'.repeat(9000) }
  }
  const events = await talk({ ...ada, maxTurns: 12 }, async (conversation) => {
    for (let i = 0; i < 12; i += 1) expect(await conversation.hear('y'.repeat(40_000), signal)).not.toBeNull()
    expect(await conversation.hear('and?', signal)).toBeNull()
  })
  expect(longest).toBeGreaterThan(40_000)
  expect(longest).toBeLessThan(70_000)
  expect(events.at(-1)).toMatchObject({ turn: 13, reply: null, over: 'max_turns', callId: null })
})

it('a recorded user says the same in every attempt, one thing after the other, and leaves; an agent without words ends the talk', async () => {
  const user: TaskUser = { by: 'record', way: 'any', maxTurns: 9, replies: ['one', 'two'] }
  const events = await talk(user, async (conversation) => {
    // An agent may ask side by side.
    const both = await Promise.all([conversation.hear('a', signal), conversation.hear('b', signal)])
    expect(both).toEqual(['one', 'two'])
    expect(await conversation.hear('c', signal)).toBeNull()
  })
  expect(events).toMatchObject([{ over: null }, { over: null }, { over: 'record', by: 'record', callId: null }])
  const silent = await talk(user, async (conversation) => {
    expect(await conversation.hear(' ', signal)).toBeNull()
    expect(await conversation.hear('still there?', signal)).toBeNull()
  })
  expect(silent).toMatchObject([{ over: 'silent' }])
})

it("the agent's clock stands still while the user is asked", async () => {
  let holds = 0
  answer = () => ({ content: holds === 1 ? 'held' : 'not held' })
  await talk(ada, async (conversation) => {
    conversation.open({
      hold: () => {
        holds += 1
        return { [Symbol.dispose]: () => void (holds -= 1) }
      },
    })
    expect(await conversation.hear('Which one?', signal)).toBe('held')
    expect(holds).toBe(0)
  })
})
