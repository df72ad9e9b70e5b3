import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useEngine } from '../fixtures/use-engine.ts'
import { hello, payloads, script, shellTool, startProxy, type TestEngine, type TestProxy } from './support.ts'

let engine: TestEngine
let paddock: TestProxy

beforeAll(async () => {
  engine = await useEngine()
  paddock = await startProxy(engine.url)
  await engine.control(
    '/scripts',
    script('List the files.', [{ think: 'I look.' }, { shell: 'ls -la' }, { say: 'Done.' }]),
  )
  await engine.control(
    '/scripts',
    script('Look twice.', [{ parallel: [{ shell: 'ls /tmp' }, { shell: 'ls /etc' }] }, { say: 'Both seen.' }]),
  )
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

describe('the chat dialect', () => {
  it('gives the official client what the engine sampled and records the ids', async () => {
    const session = await paddock.open()
    const answer = await session.client.chat.completions.create({ ...hello, seed: 7 })
    const log = await session.log()
    expect(log.calls).toHaveLength(1)
    const truth = await engine.generation(log.calls[0]?.intent.id)
    const [prompt, sampled] = log.segments
    expect(prompt?.origin).toBe('prompt')
    expect(sampled?.origin).toBe('sampled')
    expect([...(prompt?.tokens ?? [])]).toEqual(truth.promptTokenIds)
    expect([...(sampled?.tokens ?? [])]).toEqual(truth.choices[0]?.tokenIds)
    expect(sampled?.logprobs).toEqual(Float32Array.from(truth.choices[0]?.logprobs ?? []))
    expect(log.calls[0]?.commit).toMatchObject({ outcome: { kind: 'complete' }, status: 200, findings: [] })
    expect(log.calls[0]?.commit?.choices[0]?.message).toContain(answer.choices[0]?.message.content)
  })

  it('shows no injected field, and the reply in the store is what the client got', async () => {
    const session = await paddock.open()
    for (const stream of [false, true]) {
      const text = await (await session.post({ ...hello, stream })).text()
      expect(text).not.toMatch(/token_ids|"logprobs":\{/)
      expect(text).not.toContain(stream ? '"usage"' : 'nothing')
      const { calls } = await session.log()
      expect(Buffer.from(calls.at(-1)?.commit?.reply ?? []).toString()).toBe(text)
    }
  })

  it('gives logprobs and usage to a client that asks for them', async () => {
    const session = await paddock.open()
    const events = payloads(
      await (
        await session.post({ ...hello, stream: true, logprobs: true, stream_options: { include_usage: true } })
      ).text(),
    )
    expect(JSON.stringify(events)).toContain('"logprobs":{"content":[{"token"')
    expect(JSON.stringify(events)).not.toContain('token_ids')
    expect(events.at(-1)?.['usage']).toMatchObject({ completion_tokens: expect.any(Number) })
    const whole = JSON.parse(await (await session.post({ ...hello, logprobs: true, top_logprobs: 2 })).text())
    expect(whole.choices[0].logprobs.content.length).toBe(whole.usage.completion_tokens)
  })

  it.each([false, true])('carries tools, parallel calls and reasoning (stream %s)', async (stream) => {
    const session = await paddock.open()
    const ask = async (content: string) => {
      const messages = [{ role: 'user' as const, content }]
      const body = { model: 'scripted-hermes', messages, tools: [shellTool] }
      if (!stream) return (await session.client.chat.completions.create(body)).choices[0]?.message
      return (await session.client.chat.completions.stream(body).finalChatCompletion()).choices[0]?.message
    }
    const one = await ask('List the files.')
    expect(one?.tool_calls?.map((c) => c.type === 'function' && c.function)).toMatchObject([
      { name: 'shell', arguments: expect.stringContaining('ls -la') },
    ])
    const two = await ask('Look twice.')
    expect(two?.tool_calls).toHaveLength(2)
    expect(new Set(two?.tool_calls?.map((call) => call.id)).size).toBe(2)
    const { calls } = await session.log()
    expect(calls[0]?.commit?.choices[0]?.message).toContain('I look.')
    for (const [index, seen] of [one, two].entries()) {
      const stored = JSON.parse(calls[index]?.commit?.choices[0]?.message ?? '{}')
      expect(stored.tool_calls.map((c: { id: string }) => c.id)).toEqual(seen?.tool_calls?.map((c) => c.id))
    }
  })

  it('records each of n choices as its own sampled segment', async () => {
    const session = await paddock.open()
    for (const stream of [false, true]) await (await session.post({ ...hello, n: 3, stream })).text()
    const log = await session.log()
    for (const call of log.calls) {
      const sampled = log.segments.filter((s) => s.callId === call.intent.id && s.origin === 'sampled')
      expect(sampled.map((s) => s.choice)).toEqual([0, 1, 2])
      expect(new Set(sampled.map((s) => s.parent?.segmentId)).size).toBe(1)
      expect(call.commit?.findings).toEqual([])
      expect(call.commit?.choices.map((c) => c.segmentId)).toEqual(sampled.map((s) => s.id))
    }
  })

  it('sends the body to the engine as the client wrote it, but for the named members', async () => {
    const session = await paddock.open({
      policy: {
        pin: { temperature: 0.5 },
        clamp: { maxTokens: 64 },
        defaults: { topP: 0.9 },
        model: 'scripted-hermes',
      },
    })
    const body = `{ "model":"anything" , "messages":[{"role":"user","content":"Say hello."}],
      "temperature": 1.0, "max_tokens": 32000, "x_unknown": {"b":1.0,"a":12345678901234567890} }`
    await (await session.post(body)).text()
    const [call] = (await session.log()).calls
    expect(Buffer.from(call?.intent.body ?? []).toString()).toBe(body)
    expect(call?.intent.asked).toMatchObject({ temperature: 1, maxTokens: 32000, topP: null })
    expect(call?.intent.used).toMatchObject({ temperature: 0.5, maxTokens: 64, topP: 0.9 })
    expect(call?.commit?.outcome).toEqual({ kind: 'complete' })
  })

  it("passes the engine's refusal in OpenAI's shape with its own status", async () => {
    const session = await paddock.open()
    await engine.fault({ kind: 'http_error', status: 429, retryAfterSeconds: 7 })
    const refused = await session.post(hello)
    expect(refused.status).toBe(429)
    expect(refused.response.headers['retry-after']).toBe('7')
    expect(JSON.parse(await refused.text()).error).toMatchObject({
      message: expect.any(String),
      code: expect.anything(),
    })
    await engine.fault({ kind: 'http_error', status: 500 })
    const failed = await session.post({ ...hello, stream: true })
    expect(failed.status).toBe(500)
    await failed.text()
    const { calls } = await session.log()
    expect(calls.map((call) => call.commit?.outcome.kind)).toEqual(['engine_error', 'engine_error'])
    // Both left the harness without an answer.
    expect(paddock.proxy.sessionStats(session.id).taints).toEqual(['ENGINE_ERROR', 'ENGINE_ERROR'])
  })
})
