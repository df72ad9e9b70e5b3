import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type EventBody, makeTask, sha256, systemClock } from '../../core/index.ts'
import { defineTool, runToolCall, type ToolOutcome } from '../../envs/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { CommittedAnswer } from '../../proxy/index.ts'
import { CauseFinder, mcpHttp, ToolServer } from './index.ts'

// No tool of this file touches its box.
const noBox = {} as Box
const task = makeTask({ name: 't', environment: 'e', instruction: 'x', split: 'train', data: {}, source: '' })

/** Tools whose calls end when the test says so. */
const started: { word: string; signal: AbortSignal; end: (outcome: ToolOutcome) => void }[] = []
const arrivals = new EventTarget()
const tools = [
  defineTool({
    name: 'wait',
    description: 'Waits.',
    input: z.object({ word: z.string() }),
    run: ({ signal }, { word }) =>
      new Promise<ToolOutcome>((end, fail) => {
        signal.addEventListener('abort', () => fail(signal.reason as Error))
        started.push({ word, signal, end })
        arrivals.dispatchEvent(new Event('call'))
      }),
  }),
  defineTool({
    name: 'echo',
    description: 'Says it again.',
    input: z.object({ status: z.enum(['ok', 'error', 'timeout', 'infra']) }),
    run: async (_, { status }) => ({ status, text: `this is ${status}` }),
  }),
  defineTool({
    name: 'look',
    description: 'Gives a picture.',
    input: z.object({}),
    run: async () => ({
      status: 'ok',
      text: 'the screen',
      pictures: [{ mediaType: 'image/png', data: Buffer.from('no png, but bytes'), width: 4, height: 3 }],
      facts: { settleMs: 12 },
    }),
  }),
  defineTool({
    name: 'broken',
    description: 'Throws.',
    input: z.object({}),
    run: async () => {
      throw new TypeError('a fault of the author')
    },
  }),
]

let toolServer: ToolServer
let cause: CauseFinder
let server: Server
let url: string
let events: EventBody[]
let kept: Uint8Array[]
const clients: Client[] = []

beforeEach(async () => {
  events = []
  kept = []
  started.length = 0
  cause = new CauseFinder(tools.map(({ name }) => name))
  toolServer = new ToolServer({
    serverInfo: { name: 'e', version: '1' },
    task,
    attempt: { id: 'attempt' },
    tools,
    clock: systemClock,
    emit: (event) => events.push(event),
    keep: async (bytes) => {
      kept.push(bytes)
      return sha256(bytes)
    },
    cause,
  })
  toolServer.open(noBox)
  server = createServer(mcpHttp(toolServer, { streamAfterMs: 20, keepAliveMs: 10 }).request).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
})
afterEach(async () => {
  await toolServer.close()
  await Promise.all(clients.splice(0).map((client) => client.close()))
  server.closeAllConnections()
  server.close()
})

async function connect(): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  clients.push(client)
  return client
}

async function calls(count: number): Promise<void> {
  while (started.length < count) await once(arrivals, 'call')
}

describe('the client of the MCP project', () => {
  test('meets the server, lists the tools as they are defined, and pings', async () => {
    const client = await connect()
    expect(client.getServerVersion()).toEqual({ name: 'e', version: '1' })
    const { tools: listed } = await client.listTools()
    expect(listed).toMatchObject(
      tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
    )
    await client.ping()
  })

  test.each(['ok', 'error', 'timeout'] as const)(
    'reads the outcome %s, which is an event with its status',
    async (status) => {
      const client = await connect()
      const result = await client.callTool({ name: 'echo', arguments: { status } })
      expect(result).toMatchObject({ content: [{ type: 'text', text: `this is ${status}` }], isError: status !== 'ok' })
      expect(events).toMatchObject([{ kind: 'tool_result', tool: 'echo', status, result: `this is ${status}` }])
      expect(toolServer.fault.aborted).toBe(false)
    },
  )

  test('sees pictures, which are kept by the digest that their event names', async () => {
    const client = await connect()
    const bytes = Buffer.from('no png, but bytes')
    const result = await client.callTool({ name: 'look', arguments: {} })
    expect(result.content).toEqual([
      { type: 'text', text: 'the screen' },
      { type: 'image', data: bytes.toString('base64'), mimeType: 'image/png' },
    ])
    expect(kept).toEqual([bytes])
    const image = { sha256: sha256(bytes), mediaType: 'image/png', width: 4, height: 3 }
    expect(events).toMatchObject([{ kind: 'tool_result', tool: 'look', images: [image], facts: { settleMs: 12 } }])
  })

  test('gets a result that the model can act on for bad arguments, and a protocol error for an unknown tool', async () => {
    const client = await connect()
    expect(await client.callTool({ name: 'echo', arguments: { status: 'great' } })).toMatchObject({ isError: true })
    await expect(client.callTool({ name: 'nothing' })).rejects.toMatchObject({ code: -32602 })
    await expect(client.listPrompts()).rejects.toMatchObject({ code: -32601 })
  })

  test('runs calls side by side and gets slow answers as a stream', async () => {
    const [one, two] = await Promise.all([connect(), connect()])
    const words = ['a', 'b', 'c']
    const answers = words.map((word, i) => (i === 1 ? two : one)?.callTool({ name: 'wait', arguments: { word } }))
    await calls(3)
    for (const call of started.toReversed()) call.end({ status: 'ok', text: call.word.repeat(3) })
    const texts = (await Promise.all(answers)).map((answer) => answer?.content)
    expect(texts).toMatchObject([[{ text: 'aaa' }], [{ text: 'bbb' }], [{ text: 'ccc' }]])
  })

  test('takes one call back; the others and those of other clients go on', async () => {
    const [one, two] = await Promise.all([connect(), connect()])
    const stop = new AbortController()
    const first = one.callTool({ name: 'wait', arguments: { word: 'first' } }, undefined, { signal: stop.signal })
    await calls(1)
    const second = two.callTool({ name: 'wait', arguments: { word: 'second' } })
    await calls(2)
    const gone = once(started[0]?.signal ?? new EventTarget(), 'abort')
    stop.abort('enough')
    await expect(first).rejects.toThrow()
    await gone
    expect(started[1]?.signal.aborted).toBe(false)
    started[1]?.end({ status: 'ok', text: 'done' })
    expect(await second).toMatchObject({ isError: false })
  })
})

describe('the tool server', () => {
  test('ends what runs when the agent stage is over, and takes no more', async () => {
    const client = await connect()
    const answer = client.callTool({ name: 'wait', arguments: { word: 'x' } }).catch((error: unknown) => error)
    await calls(1)
    await toolServer.close()
    expect(started[0]?.signal.aborted).toBe(true)
    expect(await answer).toBeInstanceOf(Error)
    await expect(client.callTool({ name: 'echo', arguments: { status: 'ok' } })).rejects.toMatchObject({ code: -32603 })
  })

  test.each([
    ['echo', { status: 'infra' }, 'BOX_DEAD'],
    ['broken', {}, 'ENVIRONMENT_TOOL_FAILED'],
  ])('a tool that cannot work (%s) ends the attempt as a fault of ours', async (name, input, code) => {
    const client = await connect()
    expect(await client.callTool({ name, arguments: input })).toMatchObject({ isError: true })
    expect(toolServer.fault.reason).toMatchObject({ code, family: 'infra' })
    expect(events).toMatchObject([{ tool: name, status: 'infra' }])
  })

  test('a list that fails by a fault of ours is one of ours, and nobody was told the tools', async () => {
    const spoilt = {
      name: 'spoilt',
      description: 'x',
      input: z.object({}),
      run: async () => ({ status: 'ok', text: '' }),
    }
    const inputSchema = () => {
      throw new TypeError('a fault of the author')
    }
    tools.push(Object.defineProperty(spoilt, 'inputSchema', { get: inputSchema }) as unknown as (typeof tools)[number])
    try {
      const client = await connect()
      await expect(client.listTools()).rejects.toThrow('could not answer')
    } finally {
      tools.pop()
    }
    expect(toolServer.fault.reason).toMatchObject({ code: 'ENVIRONMENT_TOOL_FAILED', family: 'infra' })
    expect(toolServer.reached).toBe(false)
  })

  test('names the answer that asked for a call, each answer once, whatever the dialect', async () => {
    const client = await connect()
    for (const answer of answers) cause.note(answer)
    for (const _ of [1, 2, 3, 4, 5]) await client.callTool({ name: 'echo', arguments: { status: 'ok' } })
    expect(events).toMatchObject([
      { callId: 'chat', toolCallId: 'call_1' },
      { callId: 'chat', toolCallId: 'call_2' },
      { callId: 'responses', toolCallId: 'fc_1' },
      { callId: 'messages', toolCallId: 'toolu_1' },
      { callId: null },
    ])
  })
})

describe('on the wire', () => {
  const post = (body: string, headers: Record<string, string> = {}) =>
    fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })

  test.each([
    ['a ping without a session', ping, {}, 200],
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/initialized"}', {}, 202],
    ['no JSON', '{', {}, 400],
    ['a batch', `[${ping}]`, {}, 400],
    ['another version of JSON-RPC', '{"jsonrpc":"1.0","id":1,"method":"ping"}', {}, 400],
    ['an unknown session', ping, { 'mcp-session-id': 'x' }, 404],
    ['a version that nobody speaks', ping, { 'mcp-protocol-version': '1999-01-01' }, 400],
    ['a page of another origin', ping, { origin: 'http://evil.example' }, 403],
  ])('%s', async (_, body, headers, status) => {
    const response = await post(body, headers)
    await response.text()
    expect(response.status).toBe(status)
  })

  test('arguments nested beyond all measure are refused, and no fault of ours, whoever asked for them', async () => {
    const deep = `{"status":${'['.repeat(50_000)}${']'.repeat(50_000)}}`
    const fn = { name: 'echo', arguments: deep }
    cause.note(answer('deep', { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: fn }] }))
    const called = (args: string) =>
      post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":${args}}}`)
    expect(await (await called(deep)).json()).toMatchObject({ id: 7, error: { code: -32602 } })
    expect(toolServer.fault.aborted).toBe(false)
    expect(await (await called('{"status":"ok"}')).json()).toMatchObject({ id: 7, result: { isError: false } })
    const context = { task, attempt: { id: 'attempt' }, box: noBox, signal: AbortSignal.any([]) }
    const outcome = await runToolCall(tools, { name: 'echo', argumentsText: deep }, context)
    expect(outcome).toMatchObject({ status: 'error', text: expect.stringContaining('nested') })
  })

  test('a session ends with its DELETE, and GET offers no stream', async () => {
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const opened = await post(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }))
    expect(await opened.json()).toMatchObject({
      result: { protocolVersion: '2025-06-18', capabilities: { tools: {} } },
    })
    const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
    expect((await fetch(url, { headers })).status).toBe(405)
    expect((await post(ping, headers)).status).toBe(200)
    expect((await fetch(url, { method: 'DELETE', headers })).status).toBe(204)
    expect((await post(ping, headers)).status).toBe(404)
  })
})

/** A session whose answers ask for `echo`, as the dialects' clients see them. */
const asked = '{"status":"ok"}'
const answers: readonly CommittedAnswer[] = [
  answer('chat', {
    role: 'assistant',
    tool_calls: ['call_1', 'call_2'].map((id) => ({
      id,
      type: 'function',
      function: { name: 'mcp__e__echo', arguments: asked },
    })),
  }),
  answer('responses', {
    output: [{ type: 'function_call', id: 'x', call_id: 'fc_1', name: 'echo', arguments: asked }],
  }),
  answer('other', { content: [{ type: 'tool_use', id: 'toolu_0', name: 'echo', input: { status: 'error' } }] }),
  answer('messages', { content: [{ type: 'tool_use', id: 'toolu_1', name: 'echo', input: { status: 'ok' } }] }),
]

function answer(callId: string, message: object): CommittedAnswer {
  return { callId, callClass: 'main', messages: [JSON.stringify(message)] }
}
