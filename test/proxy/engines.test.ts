import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { probeEngine, sglangEngine, vllmEngine } from '../../src/proxy/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { hello, payloads, startProxy } from './support.ts'

describe('probeEngine', () => {
  it.each([
    ['raw_logprobs', 'raw'],
    ['temperature_logprobs', 'temperature'],
    ['processed_logprobs', 'processed'],
  ])('finds out what a vLLM with %s gives', async (mode, logprobKind) => {
    const engine = await useEngine('--logprobs-mode', mode)
    expect(await probeEngine(`${engine.url}/v1/`)).toEqual({
      url: engine.url,
      kind: 'vllm',
      models: ['scripted-hermes'],
      model: 'scripted-hermes',
      version: '0.32.0',
      givesIds: true,
      givesPromptIds: true,
      givesLogprobs: true,
      givesToolCalls: true,
      streamsIds: true,
      routedExperts: false,
      strictThinking: false,
      splice: 'derender',
      spliceVoid: null,
      logprobKind,
      maxModelLen: 131072,
      missing: [],
    })
  })

  it.each([
    ['raw_logprobs', 'raw'],
    ['temperature_logprobs', 'temperature'],
    ['processed_logprobs', 'processed'],
  ])('finds out what an SGLang with %s gives', async (mode, logprobKind) => {
    const engine = await useEngine('--wire', 'sglang', '--logprobs-mode', mode)
    expect(await probeEngine(`${engine.url}/v1/`)).toEqual({
      url: engine.url,
      kind: 'sglang',
      models: ['scripted-hermes'],
      model: 'scripted-hermes',
      version: '0.5.16',
      givesIds: true,
      givesPromptIds: true,
      givesLogprobs: true,
      givesToolCalls: true,
      streamsIds: true,
      routedExperts: false,
      strictThinking: false,
      splice: 'chat',
      spliceVoid: null,
      logprobKind,
      maxModelLen: 131072,
      missing: [],
    })
  })

  it.each([
    ['a release without sglext', ['--no-sglext'], { givesIds: true, streamsIds: false, splice: 'chat' }, []],
    [
      'a chat route that takes no ids',
      ['--no-chat-ids', '--model', 'scripted-qwen'],
      { givesIds: false, splice: 'parse' },
      ['token ids'],
    ],
    [
      'a release before ids',
      ['--sglang-version', '0.5.12.post1'],
      { givesIds: false, streamsIds: false, splice: null },
      ['token ids'],
    ],
  ] as const)('says how SGLang can be spliced: %s', async (_name, flags, found, missing) => {
    const engine = await useEngine('--wire', 'sglang', ...flags)
    const probe = await probeEngine(engine.url)
    expect(probe).toMatchObject({ kind: 'sglang', givesLogprobs: true, logprobKind: 'temperature', ...found })
    expect(probe.missing.map((item) => item.what)).toEqual(missing)
  })

  it('names what a plain server lacks and what to do about it', async () => {
    const engine = await useEngine('--wire', 'openai', '--no-logprobs')
    const probe = await probeEngine(engine.url)
    expect(probe).toMatchObject({ kind: 'openai', givesIds: false, givesLogprobs: false, logprobKind: 'unknown' })
    expect(probe.missing.map((item) => item.what)).toEqual(['token ids', 'logprobs'])
  })

  it.each([
    ['as it was', '/get_server_info', { enable_strict_thinking: true, reasoning_parser: 'qwen3' }, true],
    ['under its later name', '/server_info', { enable_strict_thinking: true, reasoning_parser: 'qwen3' }, true],
    ['in groups', '/server_info', { serving: { enable_strict_thinking: true, reasoning_parser: 'qwen3' } }, true],
    ['without a parser', '/server_info', { enable_strict_thinking: true, reasoning_parser: null }, false],
    ['without the flag', '/server_info', { enable_strict_thinking: false, reasoning_parser: 'qwen3' }, false],
  ])(
    'knows an SGLang, and whether it holds a model to a bound on thinking (%s)',
    async (_what, route, told, strict) => {
      const completion = { choices: [{ message: { content: 'Hi.' }, finish_reason: 'stop' }] }
      const server = createServer((request, response) => {
        const about = { model_path: 'm', version: '0.5.21', ...told }
        const models = { data: [{ id: 'm' }] }
        const bodies: Readonly<Record<string, object>> = {
          [route]: about,
          '/v1/models': models,
          '/v1/chat/completions': completion,
          '/model_info': { weight_version: '7' },
        }
        const found = bodies[request.url ?? '']
        response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' })
        response.end(JSON.stringify(found ?? {}))
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      try {
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
        const probe = await probeEngine(url)
        expect([probe.kind, probe.version, probe.strictThinking]).toEqual(['sglang', '0.5.21', strict])
        expect(await sglangEngine({ url }).control?.weightVersion()).toBe('7')
      } finally {
        server.close()
        server.closeAllConnections()
      }
    },
  )

  it('tells the kind of logprobs whose best alternatives are nearly alike, of another token each time', async () => {
    const server = createServer((request, response) => {
      let text = ''
      request.on('data', (chunk: Buffer) => (text += chunk.toString()))
      request.on('end', () => {
        response.setHeader('content-type', 'application/json')
        if (request.url === '/v1/models') return response.end('{"data":[{"id":"tiny"}]}')
        if (request.url !== '/v1/chat/completions') return response.writeHead(404).end('{}')
        const { temperature = 1, top_k: only = 0 } = JSON.parse(text) as { temperature?: number; top_k?: number }
        // As vLLM 0.32.0 gives them for random weights: the sampled token, and the best four.
        const best = { a: -4.9471, b: -4.951, c: -5.4, d: -5.8 }
        const top_logprobs = Object.entries(only === 1 ? { a: 0 } : best).map(([token, logprob]) => ({
          token,
          logprob: only === 1 ? logprob : logprob / temperature - 3,
        }))
        const content = [{ token: only === 1 ? 'a' : `sampled at ${temperature}`, logprob: -9, top_logprobs }]
        response.end(JSON.stringify({ choices: [{ message: {}, logprobs: { content } }] }))
        return undefined
      })
    })
    const url = await listen(server)
    try {
      expect(await probeEngine(url)).toMatchObject({ logprobKind: 'processed' })
    } finally {
      server.close()
    }
  })

  it('asks for tools and for the kind of logprobs at once, since each waits as long as the queue of the engine', async () => {
    const engine = await useEngine()
    const [tools, kind] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const server = createServer((request, response) => {
      const forward = async (): Promise<void> => {
        const body = await text(request)
        const asked = (body === '' ? {} : JSON.parse(body)) as Readonly<Record<string, unknown>>
        if (asked['tools'] !== undefined) {
          tools.resolve()
          await kind.promise
        } else if (asked['temperature'] !== undefined) {
          kind.resolve()
          await tools.promise
        }
        const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
        const answer = await fetch(`${engine.url}${request.url}`, request.method === 'POST' ? post : {})
        response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
        response.end(await answer.text())
      }
      void forward()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const { port } = server.address() as AddressInfo
      expect(await probeEngine(`http://127.0.0.1:${port}`)).toMatchObject({ givesToolCalls: true, logprobKind: 'raw' })
    } finally {
      server.close()
    }
  })

  it('says that nobody is there', async () => {
    await expect(probeEngine('http://127.0.0.1:1')).rejects.toMatchObject({ code: 'ENGINE_UNREACHABLE' })
  })
})

/**
 * Wire shapes of vLLM, transcribed from its sources and issues; documented, not run:
 * chat completion chunk with `return_token_ids` (vllm-project/vllm#22587, `ChatCompletionStreamResponse`:
 * `prompt_token_ids` at the root of the first chunk, `token_ids` per choice), the old flat error body
 * (`ErrorResponse` before 0.10), tool deltas without id in the finishing chunk (#31438).
 */
describe('vLLM wire shapes (documented, not run)', () => {
  it('strips ids from a spaced chunk and fills in the tool call that lacks its id', async () => {
    const chunks = [
      '{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "prompt_token_ids": [1, 2, 3], "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": null, "finish_reason": null, "token_ids": null}]}',
      '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\":1.0"}}]},"logprobs":{"content":[{"token":"x","logprob":-0.5}]},"finish_reason":null,"token_ids":[7]}]}',
      '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"}"}}]},"logprobs":{"content":[{"token":"y","logprob":-0.25}]},"finish_reason":"tool_calls","stop_reason":null,"token_ids":[8]}]}',
      '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2}}',
      '[DONE]',
    ]
    const fake = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
      response.end(chunks.map((chunk) => `data: ${chunk}\n\n`).join(''))
    })
    await using paddock = await startProxy(await listen(fake))
    const session = await paddock.open()
    const text = await (await session.post({ ...hello, stream: true })).text()
    expect(text).not.toMatch(/token_ids|usage|"token":/)
    const deltas = payloads(text).map((event) => (event['choices'] as { delta: Record<string, unknown> }[])[0]?.delta)
    expect(deltas[1]).toEqual({ tool_calls: [{ index: 0 }] })
    expect(deltas[2]).toEqual({
      tool_calls: [
        {
          index: 0,
          id: expect.stringMatching(/^call_/),
          type: 'function',
          function: { name: 'f', arguments: '{"a":1.0}' },
        },
      ],
    })
    const log = await session.log()
    expect(log.segments.map((segment) => [...segment.tokens])).toEqual([
      [1, 2, 3],
      [7, 8],
    ])
    expect(log.segments[1]?.logprobs).toEqual(new Float32Array([-0.5, -0.25]))
    expect(JSON.parse(log.calls[0]?.commit?.choices[0]?.message ?? '{}').tool_calls).toEqual(
      (deltas[2] as { tool_calls: { index: number }[] }).tool_calls.map(({ index: _index, ...call }) => call),
    )
    fake.close()
    fake.closeAllConnections()
  })

  it('reads the flat error body of old versions and the context overflow in it', async () => {
    const fake = createServer((_request, response) => {
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end(
        '{"object":"error","message":"This model\'s maximum context length is 4096 tokens. However, you requested 5000 tokens.","type":"BadRequestError","param":null,"code":400}',
      )
    })
    await using paddock = await startProxy(await listen(fake))
    const session = await paddock.open()
    const answer = await session.post(hello)
    expect(answer.status).toBe(400)
    expect(JSON.parse(await answer.text())).toMatchObject({
      error: { message: expect.stringContaining('4096'), type: 'BadRequestError', code: 'context_length_exceeded' },
    })
    const [call] = (await session.log()).calls
    expect(call?.commit?.outcome).toMatchObject({ kind: 'engine_error', code: 'CONTEXT_OVERFLOW', status: 400 })
    expect(paddock.proxy.sessionStats(session.id)).toMatchObject({ taints: [], lastError: 'CONTEXT_OVERFLOW' })
    fake.close()
    fake.closeAllConnections()
  })

  it('buffers only where a version is known to drop ids', () => {
    const facts = { streamed: true, hasTools: true, askedLogprobs: false, topLogprobs: null, wholeOnly: false }
    const transport = (version: string | null) => vllmEngine({ url: 'http://x', version }).planChat(facts).transport
    expect([transport('0.11.2'), transport('0.12.0'), transport('1.0.0'), transport(null)]).toEqual([
      'buffer',
      'as_asked',
      'as_asked',
      'as_asked',
    ])
  })

  it('reads ids from the logprobs where an answer has no others', async () => {
    const whole = {
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'openai/gpt-oss-20b',
      prompt_token_ids: [1, 2, 3],
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'ab' },
          logprobs: {
            content: [7, 8].map((id) => ({ token: `token_id:${id}`, logprob: -0.5, bytes: null, top_logprobs: [] })),
          },
          finish_reason: 'stop',
          token_ids: null,
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    }
    const asked: string[] = []
    const fake = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString()
        if (body !== '') asked.push(body)
        const about = { '/version': { version: '0.11.0' }, '/v1/models': { data: [{ id: 'openai/gpt-oss-20b' }] } }
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify(request.method === 'GET' ? (Reflect.get(about, request.url ?? '') ?? {}) : whole))
      })
    })
    const engine = vllmEngine({ url: await listen(fake) })
    await engine.fingerprint()
    await using paddock = await startProxy(engine.url, { engine })
    const session = await paddock.open()
    expect((await session.post({ ...hello, model: 'openai/gpt-oss-20b' })).status).toBe(200)
    expect(asked.at(-1)).toContain('"return_tokens_as_token_ids":true')
    const log = await session.log()
    expect(log.segments.map((segment) => [...segment.tokens])).toEqual([
      [1, 2, 3],
      [7, 8],
    ])
    expect(log.calls[0]?.commit?.findings).toEqual([])
    fake.close()
    fake.closeAllConnections()
  })
})

describe('fingerprints', () => {
  it.each(['vllm', 'sglang'] as const)('tell tokenizers and templates apart by what they do: %s', async (wire) => {
    const adapter = wire === 'vllm' ? vllmEngine : sglangEngine
    const of = async (model: string) => {
      const engine = await useEngine('--wire', wire, '--model', model)
      return await adapter({ url: engine.url }).fingerprint()
    }
    const [hermes, again, qwen, llama] = await Promise.all(
      ['scripted-hermes', 'scripted-hermes', 'scripted-qwen', 'scripted-llama'].map(of),
    )
    expect(again).toEqual(hermes)
    expect(hermes).toMatchObject({
      engine: wire,
      version: wire === 'vllm' ? '0.32.0' : '0.5.16',
      model: 'scripted-hermes',
      tokenizer: expect.stringMatching(/^[0-9a-f]{64}$/),
      chatTemplate: expect.stringMatching(/^[0-9a-f]{64}$/),
      // vLLM 0.32.0 does not tell its tool parser.
      parsers: wire === 'vllm' ? '-/qwen3' : 'hermes/qwen3',
    })
    expect(qwen?.tokenizer).toBe(hermes?.tokenizer)
    expect(qwen?.chatTemplate).not.toBe(hermes?.chatTemplate)
    expect(llama?.tokenizer).not.toBe(hermes?.tokenizer)
  })
})

async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
}
