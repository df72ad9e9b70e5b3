/** Message threads of Anthropic's API: a client sends its conversation once, then only what is new. */
import Anthropic from '@anthropic-ai/sdk'
import { beforeAll, describe, expect, it } from 'vitest'
import { chatRequestOf } from '../../src/proxy/index.ts'
import type { CallRecord, SessionLog } from '../../src/trajectory/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { useStore } from '../fixtures/use-store.ts'
import { expectFaithful, rows } from '../splice/support.ts'
import { rawPost, script, startProxy, type TestEngine, type TestSession } from './support.ts'

const model = 'scripted-hermes'
const prompt = 'Tidy up.'
const policy = { strategy: 'auto' as const, model }
const shell = {
  type: 'custom' as const,
  name: 'shell',
  description: 'Run a command.',
  input_schema: { type: 'object' as const, properties: { command: { type: 'string' } }, required: ['command'] },
  parse: (input: unknown) => input,
  run: async (input: unknown) => `ran ${JSON.stringify(input)}`,
}
const wrote = { role: 'user' as const, content: prompt }

let engine: TestEngine

beforeAll(async () => {
  engine = await useEngine('--model', model)
  const look = [{ shell: 'ls' }, { parallel: [{ shell: 'ls /tmp' }, { shell: 'ls /etc' }] }]
  await engine.control('/scripts', script(prompt, [...look, { think: 'Enough.', say: 'All is tidy.' }]))
})

const clientOf = (session: TestSession, origin = session.url.replace(/\/v1$/, '')) =>
  new Anthropic({ apiKey: session.key, baseURL: origin, maxRetries: 0 })

/** The SDK's own loop over tools, which goes by threads unless it is told otherwise. */
async function tidied(client: Anthropic, stream: boolean, more: { readonly thread?: false } = {}): Promise<string> {
  const system = 'You tidy.'
  const asked = { model, max_tokens: 500, system, tools: [shell], messages: [wrote], ...more }
  const last = stream
    ? await client.beta.messages.toolRunner({ ...asked, stream: true }).runUntilDone()
    : await client.beta.messages.toolRunner({ ...asked, stream: false }).runUntilDone()
  return last.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

/** What a recorded request came to, apart from ids of calls and blanks in their arguments, which the SDK's own copy loses. */
function conversation(log: SessionLog, call: CallRecord): string {
  const text = Buffer.from(chatRequestOf(log, call) ?? []).toString()
  return text.replaceAll(/chatcmpl-tool-[0-9a-f]+/g, 'call').replaceAll('\\": \\"', '\\":\\"')
}

const sent = ({ intent }: CallRecord) => JSON.parse(Buffer.from(intent.body).toString())

describe.each([false, true])('a thread (stream %s)', (stream) => {
  it('comes to the rows of a conversation that is sent whole each time', async () => {
    await using paddock = await startProxy(engine.url)
    const [whole, thread] = [await paddock.open({ policy }), await paddock.open({ policy })]
    expect(await tidied(clientOf(whole), stream, { thread: false })).toBe('All is tidy.')
    expect(await tidied(clientOf(thread), stream)).toBe('All is tidy.')
    const [log, other] = [await thread.log(), await whole.log()]
    expect(log.calls.map(({ commit }) => [commit?.outcome.kind, commit?.forks, commit?.findings])).toEqual(
      log.calls.map(() => ['complete', [], []]),
    )
    expect(rows(log)).toBe(1)
    await expectFaithful(log, engine)
    expect(log.calls.map((call) => conversation(log, call))).toEqual(
      other.calls.map((call) => conversation(other, call)),
    )
    // What the harness sent is kept as it was sent.
    expect(
      log.calls.map(sent).map(({ thread: of, messages, tools }) => [of.type, messages.length, tools?.length]),
    ).toEqual([
      ['create', 1, 1],
      ['continue', 1, undefined],
      ['continue', 1, undefined],
    ])
  })

  it('goes on behind another proxy that takes the place of the first', async () => {
    const store = await useStore()
    const first = await startProxy(engine.url, { recorder: store.recorder })
    const session = await first.open({ policy })
    const said = { model, max_tokens: 500 }
    const thread = clientOf(session).beta.messages.thread({ ...said, tools: [shell] })
    const one = await thread.send(wrote)
    await first[Symbol.asyncDispose]()
    await using second = await startProxy(engine.url, { recorder: store.recorder, revives: () => true })
    const client = clientOf(session, `${second.origin}/s/${session.id}`)
    const results = one.content.flatMap((block) =>
      block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: 'a.txt' }] : [],
    )
    const body = {
      ...said,
      messages: [{ role: 'user' as const, content: results }],
      thread: { type: 'continue' as const, previous_message_id: one.id },
    }
    const two = stream
      ? await client.beta.messages.stream(body).finalMessage()
      : await client.beta.messages.create(body)
    expect(two.content.filter(({ type }) => type === 'tool_use')).toHaveLength(2)
    expect((await session.log()).calls.map(({ commit }) => commit?.forks)).toEqual([[], []])
  })
})

it('a thread that nobody holds is told in the words at which the SDK sends all of it, and nothing forks', async () => {
  await using paddock = await startProxy(engine.url)
  const session = await paddock.open({ policy })
  const told: number[] = []
  const client = new Anthropic({
    apiKey: session.key,
    baseURL: session.url.replace(/\/v1$/, ''),
    maxRetries: 0,
    fetch: async (url, init) => {
      const sending = typeof init?.body === 'string' ? init.body : ''
      // The first answer is the only one that is gone.
      const body = told.length === 1 ? sending.replace(/(?<="previous_message_id":")[^"]*/, 'msg_0') : sending
      const answer = await fetch(url, { ...init, body })
      told.push(answer.status)
      return answer
    },
  })
  expect(await tidied(client, false)).toBe('All is tidy.')
  expect(told).toEqual([200, 404, 200, 200])
  const log = await session.log()
  expect(log.calls.map((call) => sent(call).thread.type)).toEqual(['create', 'create', 'continue'])
  expect([log.calls.flatMap(({ commit }) => commit?.forks), rows(log)]).toEqual([[], 1])
  await expectFaithful(log, engine)
})

it('a thread is of one session', async () => {
  await using paddock = await startProxy(engine.url)
  const [session, other] = [await paddock.open({ policy }), await paddock.open({ policy })]
  const said = { model, max_tokens: 500, messages: [wrote] }
  const { id } = await clientOf(session).beta.messages.create({ ...said, thread: { type: 'create' } })
  const foreign = { ...said, thread: { type: 'continue', previous_message_id: id } }
  const headers = { 'x-api-key': other.key, 'content-type': 'application/json' }
  const answer = await rawPost(`${other.url}/messages`, JSON.stringify(foreign), headers)
  expect([answer.status, JSON.parse(await answer.text())]).toEqual([
    404,
    {
      type: 'error',
      error: {
        type: 'not_found_error',
        message: expect.stringContaining('THREAD_UNKNOWN'),
        details: { error_code: 'thread_not_found' },
      },
    },
  ])
})

const refusals: readonly [string, object, string][] = [
  ['a system prompt', { system: 'Another one.' }, '`system`: a thread keeps what it was created with'],
  ['tools', { tools: [] }, '`tools`: a thread keeps what it was created with'],
  ['another kind of thread', { thread: { type: 'fork' } }, '`thread` must be create, or continue'],
  ['no answer to go on from', { thread: { type: 'continue' } }, '`thread` must be create, or continue'],
]
it.each(refusals)('%s is refused where a thread goes on', async (_, more, message) => {
  await using paddock = await startProxy(engine.url)
  const session = await paddock.open({ policy })
  const client = clientOf(session)
  const said = { model, max_tokens: 500, messages: [wrote] }
  const first = await client.beta.messages.create({ ...said, thread: { type: 'create' } })
  const thread = { type: 'continue' as const, previous_message_id: first.id }
  await expect(client.beta.messages.create({ ...said, thread, ...more })).rejects.toThrow(message)
})
