import { createServer } from 'node:http'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { probeEngine, vllmEngine } from '../../src/proxy/index.ts'
import { hello, payloads, startEngine, startProxy } from './support.ts'

describe('probeEngine', () => {
  it.each([
    ['raw_logprobs', 'raw'],
    ['temperature_logprobs', 'temperature'],
    ['processed_logprobs', 'processed'],
  ])('finds out what a vLLM with %s gives', async (mode, logprobKind) => {
    const engine = await startEngine('--logprobs-mode', mode)
    try {
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
        logprobKind,
        maxModelLen: 131072,
        missing: [],
      })
    } finally {
      await engine.stop()
    }
  })

  it('names what a plain server lacks and what to do about it', async () => {
    const engine = await startEngine('--wire', 'openai', '--no-logprobs')
    try {
      const probe = await probeEngine(engine.url)
      expect(probe).toMatchObject({ kind: 'openai', givesIds: false, givesLogprobs: false, logprobKind: 'unknown' })
      expect(probe.missing.map((item) => item.what)).toEqual(['token ids', 'logprobs'])
    } finally {
      await engine.stop()
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
    expect(call?.commit?.fate).toMatchObject({ kind: 'engine_error', code: 'CONTEXT_OVERFLOW', status: 400 })
    expect(paddock.proxy.sessionStats(session.id)).toMatchObject({ taints: [], lastError: 'CONTEXT_OVERFLOW' })
    fake.close()
    fake.closeAllConnections()
  })

  it('buffers only where a version is known to drop ids', () => {
    const facts = { streamed: true, hasTools: true, askedLogprobs: false, askedTopLogprobs: null }
    const transport = (version: string | null) => vllmEngine({ url: 'http://x', version }).planChat(facts).transport
    expect([transport('0.11.2'), transport('0.12.0'), transport('1.0.0'), transport(null)]).toEqual([
      'buffer',
      'as_asked',
      'as_asked',
      'as_asked',
    ])
  })
})

async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
}
