import type OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chatRequestOf } from '../../src/proxy/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { payloads, script, rawPost, startProxy, type TestEngine, type TestProxy, type TestSession } from './support.ts'

let engine: TestEngine
let paddock: TestProxy

beforeAll(async () => {
  engine = await useEngine()
  paddock = await startProxy(engine.url)
  const steps = [{ think: 'I look.' }, { shell: 'ls -la' }, { say: 'Done.' }]
  await engine.control('/scripts', script('List the files.', steps))
  const both = { parallel: [{ shell: 'ls /tmp' }, { shell: 'ls /etc' }] }
  await engine.control('/scripts', script('Look twice.', [both, { say: 'Both seen.' }]))
  await engine.control(
    '/scripts',
    script('Patch it.', [{ tool: 'apply_patch', args: { input: '*** Begin\n+é' } }, { say: 'Done.' }]),
  )
  await engine.control('/scripts', script('Count.', [{ say: 'one two three four five six seven eight nine ten' }]))
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

const model = 'scripted-hermes'
/** The dialect alone: what a token strategy makes of it has tests of its own. */
const record = { policy: { strategy: 'record' as const } }
const shell = {
  type: 'function' as const,
  name: 'shell',
  description: 'Run a command.',
  strict: false,
  parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
}
const codex = { model, store: false, include: ['reasoning.encrypted_content' as const], tools: [shell] }

type Ask = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'stream'>

/** Asks in one of both ways and gives the response. */
function ask(session: TestSession, stream: boolean, body: Ask): Promise<OpenAI.Responses.Response> {
  const { responses } = session.client
  return stream ? responses.stream(body).finalResponse() : responses.create(body)
}

const callOf = (response: OpenAI.Responses.Response) =>
  response.output.flatMap((item) => (item.type === 'function_call' ? [item] : []))
const outputOf = (id: string) => ({ type: 'function_call_output' as const, call_id: id, output: 'a.txt' })

async function forks(session: TestSession) {
  const { calls } = await session.log()
  return calls.map((call) => call.commit?.forks.map((fork) => fork.cause))
}

describe.each([false, true])('the responses dialect (stream %s)', (stream) => {
  it('goes on from items of stored answers that are named by their ids, as the Vercel AI SDK does', async () => {
    const session = await paddock.open({ policy: { strategy: 'splice', history: 'sampled' } })
    const input: OpenAI.Responses.ResponseInputItem[] = []
    for (const instruction of ['List the files.', 'Look twice.', 'Count.', 'Count.']) {
      input.push({ role: 'user', content: instruction })
      for (;;) {
        const response = await ask(session, stream, { model, tools: [shell], input: [...input] })
        for (const { id } of response.output) input.push({ type: 'item_reference', id: id ?? '' })
        const calls = callOf(response)
        if (calls.length === 0) break
        input.push(...calls.map((call) => outputOf(call.call_id)))
      }
    }
    const log = await session.log()
    expect(log.calls).toHaveLength(6)
    expect(log.calls.flatMap((call) => call.commit?.forks ?? [])).toEqual([])
    const segments = new Map(log.segments.map((segment) => [segment.id, segment]))
    const parents = log.calls.map((call) => segments.get(call.commit?.promptLeaf ?? '')?.parent?.segmentId)
    expect(parents.slice(1)).toEqual(log.calls.slice(0, -1).map((call) => call.commit?.choices[0]?.segmentId))
    // Whoever reads the record finds the words, not the ids.
    const fifth = log.calls.at(4)
    if (fifth === undefined) throw new Error('no fifth call')
    const body = Buffer.from(chatRequestOf(log, fifth) ?? []).toString()
    expect(body).toContain('I look.')
    expect(body).toContain('ls /etc')
    expect(body).toContain('Both seen.')
  })

  it.each(['another session', 'a call that was never made', 'a response that was not stored'])(
    'refuses an item of %s by its id',
    async (whose) => {
      const session = await paddock.open(record)
      const owner = whose === 'another session' ? await paddock.open(record) : session
      const store = whose !== 'a response that was not stored'
      const first = await ask(owner, stream, { model, input: 'Count.', store })
      const known = first.output[0]?.id ?? ''
      const id = whose === 'a call that was never made' ? known.replace(/^msg/, 'fc') : known
      const input: OpenAI.Responses.ResponseInputItem[] = [{ type: 'item_reference', id }]
      await expect(ask(session, false, { model, input })).rejects.toThrow(`Item with id '${id}' not found`)
    },
  )

  it('gives text with true usage, and records the ids', async () => {
    const session = await paddock.open(record)
    const response = await ask(session, stream, { model, input: 'Count.' })
    expect(response).toMatchObject({
      status: 'completed',
      output: [{ type: 'message', content: [{ text: 'one two three four five six seven eight nine ten' }] }],
    })
    const { calls, segments } = await session.log()
    expect(calls[0]?.intent).toMatchObject({ dialect: 'responses', path: '/v1/responses', streamed: stream })
    const truth = await engine.generation(calls[0]?.intent.id)
    expect(segments.map((segment) => [...segment.tokens])).toEqual([truth.promptTokenIds, truth.choices[0]?.tokenIds])
    expect(response.usage).toMatchObject({
      input_tokens: truth.promptTokenIds.length,
      output_tokens: truth.choices[0]?.tokenIds.length,
    })
  })

  it('carries encrypted reasoning and a call over two turns that extend, as Codex does it', async () => {
    const session = await paddock.open(record)
    const first = await ask(session, stream, { ...codex, input: 'List the files.' })
    expect(first.output).toMatchObject([
      { type: 'reasoning', encrypted_content: expect.stringMatching(/./) },
      { type: 'function_call', name: 'shell', arguments: expect.stringContaining('ls -la') },
    ])
    // Codex gives reasoning back without its text.
    const echoed = first.output.map((item) => (item.type === 'reasoning' ? { ...item, content: undefined } : item))
    const [call] = callOf(first)
    const input = [{ role: 'user', content: 'List the files.' }, ...echoed, outputOf(call?.call_id ?? '')]
    const second = await ask(session, stream, { ...codex, input: input as OpenAI.Responses.ResponseInput })
    expect(second.output).toMatchObject([{ type: 'message', content: [{ text: 'Done.' }] }])
    expect(await forks(session)).toEqual([[], []])
    expect((await session.log()).calls[0]?.delivery).toBe('echoed')
  })

  it('continues a stored response by its id, and no other', async () => {
    const session = await paddock.open(record)
    const first = await ask(session, stream, {
      model,
      tools: [shell],
      instructions: 'Be brief.',
      input: 'List the files.',
    })
    const [call] = callOf(first)
    const next = { model, tools: [shell], instructions: 'Be brief.', previous_response_id: first.id }
    const second = await ask(session, stream, { ...next, input: [outputOf(call?.call_id ?? '')] })
    expect(second.output).toMatchObject([{ type: 'message', content: [{ text: 'Done.' }] }])
    expect(await forks(session)).toEqual([[], []])
    const stranger = await paddock.open(record)
    await expect(ask(stranger, false, { ...next, input: 'x' })).rejects.toThrow(/not found/)
    const unstored = await ask(session, stream, { model, store: false, input: 'Count.' })
    await expect(ask(session, false, { model, previous_response_id: unstored.id, input: 'x' })).rejects.toThrow(
      /not found/,
    )
  })

  it('gives a stored response back, and no more once it is deleted; what continued it goes on', async () => {
    const session = await paddock.open(record)
    const { responses } = session.client
    const first = await ask(session, stream, { model, input: 'Count.' })
    const second = await ask(session, stream, { model, input: 'Count.', previous_response_id: first.id })
    const { id, output_text, usage } = first
    expect(await responses.retrieve(id)).toMatchObject({ id, output_text, usage, status: 'completed' })
    await responses.delete(first.id)
    await expect(responses.retrieve(first.id)).rejects.toMatchObject({ status: 404 })
    await expect(ask(session, false, { model, previous_response_id: first.id, input: 'x' })).rejects.toThrow(
      /not found/,
    )
    await ask(session, stream, { model, input: 'Count.', previous_response_id: second.id })
    expect(await forks(session)).toEqual([[], [], []])
    const stranger = await paddock.open(record)
    await expect(stranger.client.responses.retrieve(second.id)).rejects.toMatchObject({ status: 404 })
    await expect(stranger.client.responses.delete(second.id)).rejects.toMatchObject({ status: 404 })
  })

  it('knows parallel calls of one answer also where their outputs stand between them', async () => {
    const session = await paddock.open(record)
    const first = await ask(session, stream, { ...codex, input: 'Look twice.' })
    const calls = callOf(first)
    expect(calls).toHaveLength(2)
    const pairs = calls.flatMap((call) => [call, outputOf(call.call_id)])
    const second = await ask(session, stream, { ...codex, input: [{ role: 'user', content: 'Look twice.' }, ...pairs] })
    expect(second.output).toMatchObject([{ type: 'message', content: [{ text: 'Both seen.' }] }])
    expect(await forks(session)).toEqual([[], []])
  })

  it('offers a freeform tool as one string, and gives it back as such', async () => {
    const session = await paddock.open(record)
    const format = { type: 'grammar' as const, syntax: 'lark' as const, definition: 'start: /.+/' }
    const tools = [{ type: 'custom' as const, name: 'apply_patch', description: 'Edit files.', format }]
    const first = await ask(session, stream, { model, tools, input: 'Patch it.' })
    const item = first.output.find((one) => one.type === 'custom_tool_call')
    expect(item).toMatchObject({ name: 'apply_patch', input: '*** Begin\n+é' })
    const output = { type: 'custom_tool_call_output' as const, call_id: item?.call_id ?? '', output: 'ok' }
    const input = [{ role: 'user' as const, content: 'Patch it.' }, ...(item === undefined ? [] : [item]), output]
    const second = await ask(session, stream, { model, tools, input })
    expect(second.output).toMatchObject([{ type: 'message', content: [{ text: 'Done.' }] }])
    expect(await forks(session)).toEqual([[], []])
  })

  it('says that an answer is incomplete', async () => {
    const session = await paddock.open(record)
    const response = await ask(session, stream, { model, input: 'Count.', max_output_tokens: 3 })
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
  })
})

describe('what the responses dialect leaves out and refuses', () => {
  it("flattens namespaces and leaves tools of OpenAI's servers out", async () => {
    const session = await paddock.open(record)
    const tools = [
      { type: 'namespace' as const, name: 'box', description: 'x', tools: [shell] },
      { type: 'web_search' as const },
    ]
    const body = {
      model,
      tools,
      tool_choice: { type: 'function' as const, name: 'box__shell' },
      input: 'List the files.',
    }
    const response = await session.client.responses.create(body)
    expect(response.output.at(-1)).toMatchObject({ type: 'function_call', name: 'shell', namespace: 'box' })
    expect((await session.log()).calls[0]?.intent.lineage.toolCount).toBe(1)
  })

  it('counts the input and records nothing', async () => {
    const session = await paddock.open(record)
    const body = { model, input: 'Count.', instructions: 'Be brief.' }
    const counted = await session.client.responses.inputTokens.count(body)
    expect((await session.log()).calls).toEqual([])
    const response = await session.client.responses.create(body)
    expect(counted.input_tokens).toBe(response.usage?.input_tokens)
  })

  it.each([
    ['a prompt of the platform', { model, prompt: { id: 'pmpt_1' } }],
    ['a background response', { model, input: 'x', background: true }],
    ['an item of a server-side tool', { model, input: [{ type: 'web_search_call', id: 'x' }] }],
    ['no input', { model }],
  ])('refuses %s', async (_what, body) => {
    const session = await paddock.open(record)
    const headers = { authorization: `Bearer ${session.key}` }
    const answer = await rawPost(`${session.url}/responses`, JSON.stringify(body), headers)
    expect(answer.status).toBe(400)
    expect(JSON.parse(await answer.text())).toMatchObject({ error: { code: 'BODY_INVALID_SHAPE' } })
  })

  it('tells a fault in the stream so that SDK and Codex both see it', async () => {
    const session = await paddock.open(record)
    await engine.fault({ kind: 'die', at: 'mid_token', token: 4, match: { session: session.id } })
    await expect(ask(session, true, { model, input: 'Count.' })).rejects.toThrow(/closed the connection/)
    await engine.fault({ kind: 'die', at: 'mid_token', token: 4, match: { session: session.id } })
    const headers = { authorization: `Bearer ${session.key}` }
    const raw = await rawPost(
      `${session.url}/responses`,
      JSON.stringify({ model, input: 'Count.', stream: true }),
      headers,
    )
    expect(await raw.text()).toContain('event: response.failed\n')
  })

  it('holds the call until it is stored, and numbers its events', async () => {
    const session = await paddock.open(record)
    const headers = { authorization: `Bearer ${session.key}` }
    const body = { ...codex, input: 'List the files.', stream: true }
    const text = await (await rawPost(`${session.url}/responses`, JSON.stringify(body), headers)).text()
    const events = payloads(text.replaceAll(/^event: .*\n/gm, ''))
    expect(events.map((event) => event['sequence_number'])).toEqual(events.map((_event, index) => index))
    expect(events.at(-1)?.['type']).toBe('response.completed')
    expect(Buffer.from((await session.log()).calls[0]?.commit?.reply ?? []).toString()).toBe(text)
  })
})
