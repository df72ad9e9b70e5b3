import { describe, expect, it } from 'vitest'
import {
  chunksOf,
  get,
  INSTRUCTION,
  joinChat,
  SCRIPT,
  post,
  postStream,
  refused,
  SHELL_TOOL,
  startEngine,
} from './support.ts'
import type { Loose } from './support.ts'

// Shapes transcribed from vllm-project/vllm: entrypoints/openai/chat_completion/serving.py at 006c49d4, protocol.py at
// 002032ee, entrypoints/serve/engine/protocol.py at f1bf7bd0, serve/dev/rlhf/api_router.py at 0100a212. Not recordings.

const CHAT = { messages: [{ role: 'user', content: INSTRUCTION }], tools: [SHELL_TOOL], seed: 3 }

describe('POST /v1/chat/completions', () => {
  it('refuses more choices than it could sample before anybody else is answered', async () => {
    await using engine = await startEngine()
    for (const n of [129, 1_000_000_000]) {
      const { status, body } = await refused(engine, '/v1/chat/completions', { ...CHAT, n })
      expect([status, body.error.param]).toEqual([400, 'n'])
    }
    expect((await post(engine, '/v1/chat/completions', CHAT)).choices).toHaveLength(1)
  })

  it('answers whole with every field of ChatCompletionResponse', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    const answer = await post(engine, '/v1/chat/completions', {
      ...CHAT,
      logprobs: true,
      top_logprobs: 2,
      return_token_ids: true,
    })
    expect(answer).toEqual({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f]{32}$/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'scripted-hermes',
      choices: [expect.anything()],
      service_tier: null,
      system_fingerprint: expect.any(String),
      usage: {
        prompt_tokens: answer.prompt_token_ids.length,
        total_tokens: answer.prompt_token_ids.length + answer.choices[0].token_ids.length,
        completion_tokens: answer.choices[0].token_ids.length,
        prompt_tokens_details: null,
        completion_tokens_details: { reasoning_tokens: expect.any(Number) },
      },
      prompt_logprobs: null,
      prompt_token_ids: expect.any(Array),
      prompt_text: null,
      kv_transfer_params: null,
    })
    const [choice] = answer.choices
    expect(Object.keys(choice)).toEqual([
      'index',
      'message',
      'logprobs',
      'finish_reason',
      'stop_reason',
      'token_ids',
      'routed_experts',
    ])
    expect(Object.keys(choice.message)).toEqual([
      'role',
      'content',
      'refusal',
      'annotations',
      'audio',
      'function_call',
      'tool_calls',
      'reasoning',
    ])
    expect(choice.message.tool_calls[0]).toEqual({
      id: expect.stringMatching(/^chatcmpl-tool-[0-9a-f]{32}$/),
      type: 'function',
      function: { name: 'bash', arguments: expect.stringMatching(/^\{"command": "/) },
    })
    expect(choice.finish_reason).toBe('tool_calls')
    expect(choice.logprobs.content).toHaveLength(choice.token_ids.length)
    const branch = choice.logprobs.content.find((entry: Loose) => entry.logprob < 0)
    expect(branch.top_logprobs).toHaveLength(2)
    expect(branch.top_logprobs[0].token).toBe(branch.token)
    expect(branch.bytes).toEqual([...Buffer.from(branch.token)])
  })

  it('leaves ids and logprobs null unless asked, and tool_calls out when there are none', async () => {
    await using engine = await startEngine()
    const answer = await post(engine, '/v1/chat/completions', { messages: [{ role: 'user', content: 'Hello' }] })
    expect(answer.prompt_token_ids).toBeNull()
    expect(answer.choices[0]).toMatchObject({
      logprobs: null,
      token_ids: null,
      finish_reason: 'stop',
      stop_reason: null,
    })
    expect(answer.choices[0].message).not.toHaveProperty('tool_calls')
  })

  it('streams: role chunk with prompt ids, one chunk per token, finish, usage, [DONE]', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    const whole = await post(engine, '/v1/chat/completions', { ...CHAT, return_token_ids: true })
    const { events } = await postStream(engine, '/v1/chat/completions', {
      ...CHAT,
      stream: true,
      stream_options: { include_usage: true },
      return_token_ids: true,
      logprobs: true,
    })
    const chunks = chunksOf(events)
    expect(chunks[0].choices).toEqual([
      { index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null },
    ])
    expect(chunks.filter((chunk) => (chunk.prompt_token_ids ?? null) !== null)).toHaveLength(1)
    expect(chunks[0].prompt_token_ids).toEqual(whole.prompt_token_ids)
    const tokens = chunks.slice(1, -1)
    expect(tokens.flatMap((chunk) => chunk.choices[0].token_ids)).toEqual(whole.choices[0].token_ids)
    expect(
      tokens.every(
        (chunk) => chunk.choices[0].token_ids.length === 1 && chunk.choices[0].logprobs.content.length === 1,
      ),
    ).toBe(true)
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: whole.usage.prompt_tokens, completion_tokens: whole.usage.completion_tokens },
    })
    expect(tokens.at(-1).choices[0]).toMatchObject({ finish_reason: 'tool_calls', stop_reason: null })
    expect(events.at(-1)).toBe('[DONE]')
    const [joined] = joinChat(chunks)
    const { message } = whole.choices[0]
    expect(joined).toMatchObject({ role: 'assistant', content: message.content ?? '', reasoning: message.reasoning })
    expect(joined?.calls.map((call) => [call.name, call.arguments])).toEqual(
      message.tool_calls.map((call: Loose) => [call.function.name, call.function.arguments]),
    )
  })

  it('gives id, type and name with the first delta of a call only (issue 42696)', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    const chunks = chunksOf((await postStream(engine, '/v1/chat/completions', { ...CHAT, stream: true })).events)
    const deltas = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? [])
    expect(Object.keys(deltas[0])).toEqual(['id', 'type', 'index', 'function'])
    expect(deltas.length).toBeGreaterThan(2)
    for (const delta of deltas.slice(1))
      expect(delta).toEqual({ index: 0, function: { arguments: expect.any(String) } })
  })

  it('skips chunks that show nothing when neither ids nor logprobs are asked for', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    const quiet = chunksOf((await postStream(engine, '/v1/chat/completions', { ...CHAT, stream: true })).events)
    const full = chunksOf(
      (await postStream(engine, '/v1/chat/completions', { ...CHAT, stream: true, return_token_ids: true })).events,
    )
    expect(quiet.length).toBeLessThan(full.length)
    expect(quiet.slice(1, -1).every((chunk) => Object.keys(chunk.choices[0].delta).length > 0)).toBe(true)
  })

  it('draws n choices that may differ, each with its own ids', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    const answer = await post(engine, '/v1/chat/completions', { ...CHAT, n: 8, return_token_ids: true })
    expect(answer.choices.map((choice: Loose) => choice.index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    expect(new Set(answer.choices.map((choice: Loose) => choice.token_ids.join())).size).toBe(2)
    const { events } = await postStream(engine, '/v1/chat/completions', {
      ...CHAT,
      n: 8,
      return_token_ids: true,
      stream: true,
    })
    expect(joinChat(chunksOf(events)).map((choice) => choice.ids)).toEqual(
      answer.choices.map((choice: Loose) => choice.token_ids),
    )
  })

  it('stops at stop strings: text is cut, ids are not, the string is named', async () => {
    await using engine = await startEngine()
    const ask = {
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [SHELL_TOOL],
      stop: ['engine,', 'prompt'],
      temperature: 0,
      return_token_ids: true,
    }
    const answer = await post(engine, '/v1/chat/completions', ask)
    const [choice] = answer.choices
    expect(choice).toMatchObject({ finish_reason: 'stop', stop_reason: 'engine,' })
    expect(choice.message.content).toBe('I am a scripted ')
    expect((await post(engine, '/detokenize', { tokens: choice.token_ids })).prompt).toContain('engine,')
    const kept = await post(engine, '/v1/chat/completions', { ...ask, include_stop_str_in_output: true })
    expect(kept.choices[0].message.content).toBe('I am a scripted engine,')
    const { events } = await postStream(engine, '/v1/chat/completions', { ...ask, stream: true })
    expect(joinChat(chunksOf(events))[0]?.content).toBe('I am a scripted ')
  })

  it.each(['max_tokens', 'max_completion_tokens'])('ends with length after %s', async (field) => {
    await using engine = await startEngine()
    const answer = await post(engine, '/v1/chat/completions', { ...CHAT, [field]: 2, return_token_ids: true })
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'length' })
    expect(answer.choices[0].token_ids).toHaveLength(2)
  })

  it('keeps the first call only without parallel_tool_calls, and goes on with the second next time', async () => {
    await using engine = await startEngine()
    const steps = [{ parallel: [{ shell: 'first' }, { shell: 'second' }] }, { say: 'ok' }]
    await post(engine, '/control/scripts', { instruction: INSTRUCTION, candidates: [{ name: 'only', steps }] })
    const ask = { ...CHAT, parallel_tool_calls: false }
    const first = (await post(engine, '/v1/chat/completions', ask)).choices[0].message
    expect(first.tool_calls.map((call: Loose) => call.function.arguments)).toEqual(['{"command": "first"}'])
    const messages = [...CHAT.messages, first, { role: 'tool', tool_call_id: first.tool_calls[0].id, content: 'done' }]
    const second = (await post(engine, '/v1/chat/completions', { ...ask, messages })).choices[0].message
    expect(second.tool_calls.map((call: Loose) => call.function.arguments)).toEqual(['{"command": "second"}'])
  })

  it('obeys tool_choice: none gives raw text, required and named give calls', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    const ask = { ...CHAT, temperature: 0 }
    const none = (await post(engine, '/v1/chat/completions', { ...ask, tool_choice: 'none' })).choices[0]
    expect(none).toMatchObject({ finish_reason: 'stop', message: { content: expect.stringContaining('<tool_call>') } })
    const required = (await post(engine, '/v1/chat/completions', { ...ask, tool_choice: 'required' })).choices[0]
    expect(required.finish_reason).toBe('tool_calls')
    const named = (
      await post(engine, '/v1/chat/completions', {
        ...ask,
        tool_choice: { type: 'function', function: { name: 'bash' } },
      })
    ).choices[0]
    expect(named.finish_reason).toBe('stop')
    expect(named.message.tool_calls[0].function).toEqual(required.message.tool_calls[0].function)
  })

  it('fills a JSON schema when response_format asks for one', async () => {
    await using engine = await startEngine()
    const schema = {
      type: 'object',
      properties: { verdict: { enum: ['yes', 'no'] }, score: { type: 'integer', minimum: 1 } },
      required: ['verdict', 'score'],
    }
    const answer = await post(engine, '/v1/chat/completions', {
      messages: [{ role: 'user', content: 'Judge' }],
      response_format: { type: 'json_schema', json_schema: { name: 'v', schema } },
    })
    expect(JSON.parse(answer.choices[0].message.content)).toEqual({ verdict: 'yes', score: 1 })
  })

  it('continues a final message where it ends', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', {
      instruction: INSTRUCTION,
      candidates: [{ name: 'say', steps: [{ say: 'All of it is done now.' }] }],
    })
    const messages = [...CHAT.messages, { role: 'assistant', content: 'All of it' }]
    const answer = await post(engine, '/v1/chat/completions', {
      messages,
      add_generation_prompt: false,
      continue_final_message: true,
    })
    expect(answer.choices[0].message.content).toBe(' is done now.')
  })

  it('gives numbers of arguments and schemas to the template as they were written', async () => {
    await using engine = await startEngine()
    const args = '{"ratio": 1.0, "id": 12345678901234567890}'
    const body = `{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": ${JSON.stringify(args)}}}]}, {"role": "tool", "content": "y"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": {"10": 1, "9": 2.50}}}]}`
    const response = await fetch(`${engine.url}/tokenize`, { method: 'POST', body })
    const { tokens }: Loose = await response.json()
    const { prompt } = await post(engine, '/detokenize', { tokens })
    expect(prompt).toContain(args)
    expect(prompt).toContain('{"10": 1, "9": 2.50}')
  })

  it.each([
    ['no JSON', '{"messages":', 400, 'BadRequestError'],
    ['no messages', '{}', 400, 'BadRequestError'],
    ['another model', { model: 'gpt', messages: [] }, 404, 'NotFoundError'],
    ['negative temperature', { messages: [{ role: 'user', content: 'x' }], temperature: -1 }, 400, 'BadRequestError'],
    [
      'top_logprobs without logprobs',
      { messages: [{ role: 'user', content: 'x' }], top_logprobs: 2 },
      400,
      'BadRequestError',
    ],
    [
      'an unknown named tool',
      { ...CHAT, tool_choice: { type: 'function', function: { name: 'nope' } } },
      400,
      'BadRequestError',
    ],
    [
      'broken arguments',
      { messages: [{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: '{' } }] }] },
      400,
      'BadRequestError',
    ],
    [
      'an image',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] },
      400,
      'BadRequestError',
    ],
  ])('refuses %s in the shape of ErrorResponse', async (_name, body, status, type) => {
    await using engine = await startEngine()
    const answer = await refused(engine, '/v1/chat/completions', body)
    expect(answer.status).toBe(status)
    expect(answer.body).toEqual({
      error: { message: expect.any(String), type, param: answer.body.error.param, code: status },
    })
  })

  it('refuses a prompt that does not fit (renderers/params.py TokenizeParams)', async () => {
    await using engine = await startEngine('--max-model-len', '64')
    const long = { messages: [{ role: 'user', content: 'word '.repeat(100) }], max_tokens: 8 }
    const { status, body } = await refused(engine, '/v1/chat/completions', long)
    expect(status).toBe(400)
    expect(body.error).toMatchObject({ type: 'BadRequestError', param: 'input_tokens', code: 400 })
    expect(body.error.message).toMatch(
      /^You passed \d+ input tokens and requested 8 output tokens\. However, the model's context length is only 64 tokens, resulting in a maximum input length of 56 tokens\./,
    )
    const short = await post(engine, '/v1/chat/completions', {
      ...long,
      messages: [{ role: 'user', content: 'word '.repeat(20) }],
    })
    expect(short.choices[0].finish_reason).toMatch(/stop|length/)
  })
})

describe('server facts', () => {
  it('lists the model with its length, health, version, tokenize and detokenize', async () => {
    await using engine = await startEngine('--max-model-len', '4096')
    expect(await get(engine, '/v1/models')).toEqual({
      object: 'list',
      data: [
        {
          id: 'scripted-hermes',
          object: 'model',
          created: expect.any(Number),
          owned_by: 'vllm',
          root: 'scripted-hermes',
          parent: null,
          max_model_len: 4096,
          permission: [],
        },
      ],
    })
    expect((await fetch(`${engine.url}/health`)).status).toBe(200)
    expect(await get(engine, '/version')).toEqual({ version: '0.32.0' })
    const { tokens, count } = await post(engine, '/tokenize', { prompt: 'Hello, wörld' })
    expect(count).toBe(tokens.length)
    expect(await post(engine, '/detokenize', { tokens })).toEqual({ prompt: 'Hello, wörld' })
  })

  it('asks for the key on /v1 and /inference only', async () => {
    await using engine = await startEngine('--api-key', 'secret')
    expect((await fetch(`${engine.url}/v1/models`)).status).toBe(401)
    expect((await fetch(`${engine.url}/v1/models`, { headers: { authorization: 'Bearer secret' } })).status).toBe(200)
    expect((await fetch(`${engine.url}/health`)).status).toBe(200)
  })

  it('serves completions of ids with per-choice ids', async () => {
    await using engine = await startEngine()
    const { tokens } = await post(engine, '/tokenize', { messages: CHAT.messages, tools: CHAT.tools })
    const answer = await post(engine, '/v1/completions', {
      prompt: tokens,
      max_tokens: 5,
      logprobs: 1,
      return_token_ids: true,
    })
    expect(answer).toMatchObject({
      object: 'text_completion',
      usage: { prompt_tokens: tokens.length, completion_tokens: 5 },
    })
    const [choice] = answer.choices
    expect(choice).toMatchObject({ finish_reason: 'length', prompt_token_ids: tokens })
    expect(choice.logprobs.tokens.join('')).toBe(choice.text)
    expect(choice.logprobs.token_logprobs).toHaveLength(5)
  })

  it('honours x-request-id in the id of the answer', async () => {
    await using engine = await startEngine()
    const answer = await post(engine, '/v1/chat/completions', CHAT, { 'x-request-id': 'abc' })
    expect(answer.id).toBe('chatcmpl-abc')
  })
})

describe('weights, pause and abort (serve/dev/rlhf/api_router.py)', () => {
  it('tells and takes weight versions', async () => {
    await using engine = await startEngine('--weight-version', '7')
    expect(await get(engine, '/weight_info')).toEqual({ weight_version: '7' })
    expect(await post(engine, '/update_weight_version', { new_version: 'step-8' })).toEqual({
      success: true,
      new_version: 'step-8',
    })
    expect(await post(engine, '/finish_weight_update', { weight_version: '9' })).toEqual({
      message: 'Weight update finished',
    })
    expect(await get(engine, '/weight_info')).toEqual({ weight_version: '9' })
  })

  it('abort ends what is in flight with finish reason abort, and holds new requests until resume', async () => {
    await using engine = await startEngine('--tokens-per-second', '20')
    const running = post(engine, '/v1/chat/completions', { ...CHAT, return_token_ids: true })
    await expect.poll(() => engine.engine.flights.size).toBe(1)
    expect(await post(engine, '/pause?mode=abort', {})).toEqual({ status: 'paused' })
    expect((await running).choices[0].finish_reason).toBe('abort')
    expect(await get(engine, '/is_paused')).toEqual({ is_paused: true })
    const held = post(engine, '/v1/chat/completions', { ...CHAT, max_tokens: 1 })
    await expect.poll(() => engine.engine.flights.size).toBe(1)
    await post(engine, '/resume', {})
    expect((await held).choices[0].finish_reason).toBe('length')
  })

  it('keep freezes a stream and goes on with the weights that came meanwhile', async () => {
    await using engine = await startEngine('--tokens-per-second', '50')
    const rendered = await post(engine, '/v1/chat/completions/render', CHAT)
    const running = post(engine, '/inference/v1/generate', rendered)
    await expect.poll(() => [...engine.engine.flights].length).toBe(1)
    await post(engine, '/pause?mode=keep', {})
    await post(engine, '/update_weight_version', { new_version: '1' })
    await post(engine, '/resume', {})
    const spans = (await running).choices[0].weight_versions
    expect(spans.at(-1).version).toBe('1')
  })

  it('aborts one request by its id', async () => {
    await using engine = await startEngine('--tokens-per-second', '10')
    const running = post(engine, '/v1/chat/completions', CHAT, { 'x-request-id': 'one' })
    await expect.poll(() => engine.engine.flights.size).toBe(1)
    expect(await post(engine, '/abort_requests', { request_ids: ['one'] })).toEqual({ status: 'aborted', aborted: 1 })
    expect((await running).choices[0].finish_reason).toBe('abort')
  })
})
