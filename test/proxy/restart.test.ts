/** A proxy ends, another one goes on over the same store: keys, conversations, stored responses and handles hold. */
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { buildRows, openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { revivingProxy } from '../kill/reviving.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import {
  hello,
  script,
  rawPost,
  shellTool,
  startProxy,
  type TestEngine,
  type TestProxy,
  testStore,
  type TestSession,
} from './support.ts'

const model = 'scripted-hermes'
const steps = [
  { think: 'I look.' },
  { shell: 'ls -la' },
  { shell: 'cat a.txt' },
  { shell: 'wc a.txt' },
  { say: 'Done.' },
]

let engine: TestEngine
beforeAll(async () => {
  engine = await useEngine()
  await engine.control('/scripts', script('List the files.', steps))
  await engine.control('/scripts', script('Count.', [{ say: 'one two three four five six seven eight nine ten' }]))
})

type Message = OpenAI.Chat.Completions.ChatCompletionMessageParam

/** One turn of a harness that keeps what it was given: asks, and appends answer and tool results to the messages. */
async function turn(client: OpenAI, messages: Message[], stream: boolean): Promise<void> {
  const body = { model, messages, tools: [shellTool] }
  const { choices } = stream
    ? await client.chat.completions.stream(body).finalChatCompletion()
    : await client.chat.completions.create(body)
  const message = choices[0]?.message
  if (message === undefined) throw new Error('no answer')
  messages.push(message)
  for (const call of message.tool_calls ?? []) messages.push({ role: 'tool', tool_call_id: call.id, content: 'ok' })
}

describe('after kill -9 and a restart on the same store', () => {
  let directory: string
  beforeEach(async () => {
    directory = tempDir()
  })

  it('a harness goes on under its key and URL, and every prompt extends the same path', async () => {
    const data = join(directory, 'data')
    let runner = await revivingProxy(data, engine.url, 0, 'record', 'splice')
    const { port, sessions } = runner
    const talks = sessions.map(({ id, key }) => ({
      id,
      client: new OpenAI({ apiKey: key, baseURL: `http://127.0.0.1:${port}/s/${id}/v1`, maxRetries: 0 }),
      messages: [{ role: 'user', content: 'List the files.' }] as Message[],
    }))
    for (const stream of [false, true, false, true]) {
      for (const { client, messages } of talks) await turn(client, messages, stream)
      await runner.kill()
      runner = await revivingProxy(data, engine.url, port)
    }
    await runner.kill()

    await using store = await openStore(data)
    for (const { id, messages } of talks) {
      expect(messages.at(-1)).toMatchObject({ content: 'Done.' })
      const log = await store.recorder.session(id)
      expect(log.calls.map(({ intent, commit }) => [intent.seq, commit?.outcome.kind, commit?.forks])).toEqual(
        [0, 1, 2, 3].map((seq) => [seq, 'complete', []]),
      )
      const { rows } = buildRows(log, { rolloutId: 'r', groupId: 'g', taskDigest: 't' })
      expect(rows).toHaveLength(1)
      // What the engine says it conditioned on, and sampled, is the row.
      const last = await engine.generation(log.calls.at(-1)?.intent.id)
      expect([...(rows[0]?.tokens ?? [])]).toEqual([...last.promptTokenIds, ...(last.choices[0]?.tokenIds ?? [])])
    }
  })
})

describe('a proxy over the store of another one', () => {
  let store: Awaited<ReturnType<typeof testStore>>
  let paddock: TestProxy
  beforeEach(async () => {
    store = await testStore()
    paddock = await startProxy(engine.url, { recorder: store.recorder })
  })
  afterEach(async () => {
    await paddock[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
  })

  /** The proxy ends and another takes its place; the session's clients go to that one. */
  async function restart(session: TestSession, revives = true): Promise<OpenAI> {
    await paddock[Symbol.asyncDispose]()
    paddock = await startProxy(engine.url, { recorder: store.recorder, revives: () => revives })
    return new OpenAI({ apiKey: session.key, baseURL: `${paddock.origin}/s/${session.id}/v1`, maxRetries: 0 })
  }
  const forks = async (session: TestSession) => (await session.log()).calls.map(({ commit }) => commit?.forks)

  it.each([false, true])('continues stored responses, and knows the deleted ones (stream %s)', async (stream) => {
    const session = await paddock.open()
    const ask = (client: OpenAI, body: OpenAI.Responses.ResponseCreateParamsNonStreaming) =>
      stream ? client.responses.stream({ ...body, stream: true }).finalResponse() : client.responses.create(body)
    const first = await ask(session.client, { model, input: 'Count.' })
    const gone = await ask(session.client, { model, input: 'Count.' })
    const unstored = await ask(session.client, { model, input: 'Count.', store: false })
    await session.client.responses.delete(gone.id)
    const client = await restart(session)
    const { id: firstId, output_text, usage } = first
    expect(await client.responses.retrieve(firstId)).toMatchObject({ id: firstId, output_text, usage })
    for (const { id } of [gone, unstored]) {
      await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
    }
    const next = await ask(client, { model, input: 'Count.', previous_response_id: first.id })
    expect(next.status).toBe('completed')
    expect(await forks(session)).toEqual([[], [], [], []])
    const { segments } = await session.log()
    const last = segments.findLast(({ origin }) => origin === 'prompt')
    const answer = segments.find(({ id }) => id === last?.parent?.segmentId)
    expect([answer?.origin, answer?.callId]).toEqual(['sampled', (await session.log()).calls[0]?.intent.id])
  })

  it('reads the handles that the other one made', async () => {
    const session = await paddock.open()
    const shell = { ...shellTool.function, type: 'function' as const, strict: false }
    const codex = { model, store: false, include: ['reasoning.encrypted_content' as const], tools: [shell] }
    const first = await session.client.responses.create({ ...codex, input: 'List the files.' })
    const client = await restart(session)
    const echoed = first.output.map((item) => (item.type === 'reasoning' ? { ...item, content: undefined } : item))
    const outputs = first.output.flatMap((item) =>
      item.type === 'function_call'
        ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: 'a.txt' }]
        : [],
    )
    const input = [
      { role: 'user', content: 'List the files.' },
      ...echoed,
      ...outputs,
    ] as OpenAI.Responses.ResponseInput
    await client.responses.create({ ...codex, input })
    expect((await session.log()).calls[0]?.delivery).toBe('echoed')
    // The one after that reads a past in which tools were called.
    await (await restart(session)).responses.create({ ...codex, input })
    expect(await forks(session)).toEqual([[], [], []])
  })

  it('gives an answer that never arrived to the client that asks for it again, without asking the engine', async () => {
    const session = await paddock.open()
    const body = JSON.stringify({ ...hello, messages: [{ role: 'user', content: 'Count.' }] })
    const headers = { authorization: `Bearer ${session.key}`, 'content-type': 'application/json' }
    const first = await session.post(body)
    const answer = await first.text()
    await paddock.event(({ type }) => type === 'delivery')
    await restart(session)
    const url = `${paddock.origin}/s/${session.id}/v1/chat/completions`
    const retried = await rawPost(url, body, { ...headers, 'x-stainless-retry-count': '1' })
    expect([retried.response.headers['x-request-id'], await retried.text()]).toEqual([
      first.response.headers['x-request-id'],
      answer,
    ])
    // Without the mark of a retry an equal request is a sample of its own.
    await (await rawPost(url, body, headers)).text()
    expect((await session.log()).calls).toHaveLength(2)
  })

  it('goes on with what was counted', async () => {
    const budget = { maxCalls: 2, maxSampledTokens: null, maxWallMs: null }
    const session = await paddock.open({ policy: { budget } })
    await session.client.chat.completions.create(hello)
    const client = await restart(session)
    await client.chat.completions.create(hello)
    await expect(client.chat.completions.create(hello)).rejects.toMatchObject({ status: 429 })
    const { calls, sampledTokens, exhausted } = paddock.proxy.sessionStats(session.id)
    const { segments } = await session.log()
    const sampled = segments
      .filter(({ origin }) => origin === 'sampled')
      .reduce((sum, one) => sum + one.tokens.length, 0)
    expect([calls, sampledTokens, exhausted]).toEqual([2, sampled, 'maxCalls'])
  })

  describe('in open mode', () => {
    beforeEach(async () => {
      await paddock[Symbol.asyncDispose]()
      await openAgain()
    })
    const openAgain = async () => {
      paddock = await startProxy(engine.url, { recorder: store.recorder, openMode: true, revives: () => true })
    }
    const clientOf = (native: string | null, apiKey = 'anything') =>
      new OpenAI({
        apiKey,
        baseURL: `${paddock.origin}/v1`,
        maxRetries: 0,
        ...(native === null ? {} : { defaultHeaders: { 'x-session-id': native } }),
      })
    const opened = async () => (await store.recorder.sessions()).filter(({ labels }) => labels['opened'] !== undefined)

    it.each(['a', null])('a harness without a key goes on where it was (its own session id: %s)', async (native) => {
      const messages: Message[] = [{ role: 'user', content: 'List the files.' }]
      await Promise.all([turn(clientOf(native), messages, false), clientOf('other').chat.completions.create(hello)])
      for (const stream of [true, false]) {
        await paddock[Symbol.asyncDispose]()
        await openAgain()
        await turn(clientOf(native), messages, stream)
      }
      const sessions = await opened()
      expect(sessions).toHaveLength(2)
      const mine = sessions.find(({ labels }) => labels['native'] === (native ?? undefined))
      const { calls } = await store.recorder.session(mine?.id ?? '')
      expect(calls.map(({ intent, commit }) => [intent.seq, commit?.forks])).toEqual([0, 1, 2].map((seq) => [seq, []]))
    })

    it('a server that was stopped in an orderly way has left nothing to go on with', async () => {
      await clientOf('a').chat.completions.create(hello)
      await paddock.proxy.closeOpenMode()
      const [first] = await opened()
      expect((await store.recorder.session(first?.id ?? '')).closedAt).not.toBeNull()
      await paddock[Symbol.asyncDispose]()
      await openAgain()
      await clientOf('a').chat.completions.create(hello)
      // Whoever closes one in between gets the next.
      await paddock.proxy.closeSession((await opened())[1]?.id ?? '')
      await Promise.all([1, 2].map(() => clientOf('a').chat.completions.create(hello)))
      expect(await opened()).toHaveLength(3)
    })

    it('a key of before opens its session, and no other one beside it', async () => {
      const session = await paddock.open()
      await session.client.chat.completions.create(hello)
      await paddock[Symbol.asyncDispose]()
      await openAgain()
      await clientOf(null, session.key).chat.completions.create(hello)
      expect((await session.log()).calls).toHaveLength(2)
      expect(await opened()).toEqual([])
    })
  })

  it('keeps closed sessions closed, and does not revive what it may not', async () => {
    const [closed, open] = [await paddock.open(), await paddock.open()]
    await paddock.proxy.closeSession(closed.id)
    const late = await restart(closed)
    await expect(late.chat.completions.create(hello)).rejects.toThrow(/closed/)
    const third = await paddock.open()
    await restart(third)
    await paddock.proxy.closeSession(third.id)
    expect((await third.log()).closedAt).not.toBeNull()
    await expect(paddock.proxy.closeSession('01a1fadd-3411-7000-a8c3-fcac2b92f671')).rejects.toMatchObject({
      code: 'SESSION_UNKNOWN',
    })
    const refused = await restart(open, false)
    await expect(refused.chat.completions.create(hello)).rejects.toThrow(/closed/)
    const stranger = new OpenAI({ apiKey: 'pdk_nobody', baseURL: `${paddock.origin}/s/${open.id}/v1`, maxRetries: 0 })
    await expect(stranger.chat.completions.create(hello)).rejects.toMatchObject({ status: 401 })
  })
})
