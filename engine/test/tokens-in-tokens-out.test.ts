import { describe, expect, it } from 'vitest'
import { profileNames } from '../src/profiles.ts'
import {
  chunksOf,
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

const CHAT = {
  messages: [{ role: 'user', content: INSTRUCTION }],
  tools: [SHELL_TOOL],
  logprobs: true,
  top_logprobs: 2,
  seed: 11,
  return_token_ids: true,
}

function visible(choice: Loose): unknown {
  const { message } = choice
  return {
    content: message.content,
    reasoning: message.reasoning,
    calls: (message.tool_calls ?? []).map((call: Loose) => call.function),
    finish: choice.finish_reason,
  }
}

describe.each(profileNames)('render -> generate -> derender on %s', (model) => {
  it.each([
    ['auto', { tool_choice: 'auto' }],
    ['required', { tool_choice: 'required' }],
    ['named', { tool_choice: { type: 'function', function: { name: 'bash' } } }],
    ['stop string', { stop: ['users'] }],
    ['token limit', { max_tokens: 4 }],
    ['no thinking', { chat_template_kwargs: { enable_thinking: false } }],
  ])('gives what the chat route gives: %s', async (_name, extra) => {
    await using engine = await startEngine('--model', model)
    await post(engine, '/control/scripts', SCRIPT)
    const chat = { model, ...CHAT, ...extra }
    const straight = await post(engine, '/v1/chat/completions', chat)
    const rendered = await post(engine, '/v1/chat/completions/render', chat)
    expect(rendered.token_ids).toEqual(straight.prompt_token_ids)
    const generated = await post(engine, '/inference/v1/generate', rendered)
    expect(generated.choices[0].token_ids).toEqual(straight.choices[0].token_ids)
    expect(generated.choices[0].logprobs.content.map((entry: Loose) => entry.logprob)).toEqual(
      straight.choices[0].logprobs.content.map((entry: Loose) => entry.logprob),
    )
    const derendered = await post(engine, '/v1/chat/completions/derender', {
      model,
      generate_response: generated,
      prompt_tokens: rendered.token_ids.length,
      prompt_token_ids: rendered.token_ids,
      chat_request: chat,
    })
    expect(visible(derendered.choices[0])).toEqual(visible(straight.choices[0]))
    expect(derendered.usage.total_tokens).toBe(straight.usage.total_tokens)
    expect(derendered.choices[0].logprobs.content.map((entry: Loose) => entry.token)).toEqual(
      straight.choices[0].logprobs.content.map((entry: Loose) => entry.token),
    )
  })

  it('derenders a stream chunk by chunk to the same deltas as the chat stream', async () => {
    await using engine = await startEngine('--model', model)
    await post(engine, '/control/scripts', SCRIPT)
    const chat = { model, ...CHAT, stream: true }
    const direct = joinChat(chunksOf((await postStream(engine, '/v1/chat/completions', chat)).events))[0]
    const rendered = await post(engine, '/v1/chat/completions/render', chat)
    const { events } = await postStream(engine, '/inference/v1/generate', {
      ...rendered,
      stream_options: { include_usage: true },
    })
    const derendered: Loose[] = []
    let state: unknown = null
    for (const chunk of chunksOf(events)) {
      const step = await post(engine, '/v1/chat/completions/derender', {
        stream: true,
        generate_chunk: chunk,
        stream_state: state,
        prompt_token_ids: rendered.token_ids,
        chat_request: chat,
      })
      derendered.push(step.chunk)
      state = step.stream_state
    }
    const joined = joinChat(derendered)[0]
    const named = (calls: Loose[]): unknown => calls.map(({ name, arguments: args }) => ({ name, args }))
    expect({ ...joined, ids: [], calls: named(joined?.calls ?? []) }).toEqual({
      ...direct,
      ids: [],
      calls: named(direct?.calls ?? []),
    })
    expect(derendered.at(-1).usage.completion_tokens).toBe(direct?.ids.length)
  })

  it('carries a resubmitted answer on from the very token where it was cut', async () => {
    await using engine = await startEngine('--model', model)
    await post(engine, '/control/scripts', SCRIPT)
    const rendered = await post(engine, '/v1/chat/completions/render', { model, ...CHAT, temperature: 0 })
    const whole = (await post(engine, '/inference/v1/generate', rendered)).choices[0].token_ids
    for (const cut of [1, Math.floor(whole.length / 2), whole.length - 1]) {
      const rest = await post(engine, '/inference/v1/generate', {
        ...rendered,
        token_ids: [...rendered.token_ids, ...whole.slice(0, cut)],
      })
      expect([...whole.slice(0, cut), ...rest.choices[0].token_ids]).toEqual(whole)
    }
  })
})

describe('the generate wire', () => {
  it('has the shape of GenerateTokensResponse (vLLM 0.32, token_in_token_out/protocol.py at 006ebac2)', async () => {
    await using engine = await startEngine('--weight-version', 'step-7')
    const { token_ids: ids } = await post(engine, '/v1/chat/completions/render', CHAT)
    const answer = await post(engine, '/inference/v1/generate', {
      request_id: 'mine',
      token_ids: ids,
      sampling_params: { logprobs: 1, max_tokens: 2, temperature: 0 },
      return_token_ids: true,
    })
    expect(Object.keys(answer)).toEqual([
      'request_id',
      'model',
      'created',
      'usage',
      'prompt_logprobs',
      'prompt_token_ids',
      'kv_transfer_params',
      'ec_transfer_params',
      'output_mode',
      'choices',
    ])
    expect(answer).toMatchObject({ request_id: 'generate-tokens-mine', output_mode: 'tokens', prompt_token_ids: ids })
    const [choice] = answer.choices
    expect(choice).toMatchObject({
      index: 0,
      finish_reason: 'length',
      routed_experts: null,
      weight_versions: [{ version: 'step-7', start: 0, end: 2 }],
    })
    expect(Object.keys(choice.logprobs.content[0])).toEqual(['token_id', 'logprob', 'rank', 'top_logprobs'])
    expect(choice.logprobs.content.map((entry: Loose) => entry.token_id)).toEqual(choice.token_ids)
  })

  it('names tokens "token_id:N" for releases before 0.32 (v0.27.0 docs of the same module)', async () => {
    await using engine = await startEngine('--vllm-version', '0.27.0')
    const { token_ids: ids } = await post(engine, '/v1/chat/completions/render', CHAT)
    const answer = await post(engine, '/inference/v1/generate', {
      token_ids: ids,
      sampling_params: { logprobs: 0, max_tokens: 1 },
    })
    const [choice] = answer.choices
    expect(choice.logprobs.content[0].token).toBe(`token_id:${choice.token_ids[0]}`)
    expect(answer).not.toHaveProperty('output_mode')
  })

  it('streams one event per token, spans on the last, then usage and [DONE]', async () => {
    await using engine = await startEngine()
    const { token_ids: ids } = await post(engine, '/v1/chat/completions/render', CHAT)
    const { events } = await postStream(engine, '/inference/v1/generate', {
      token_ids: ids,
      sampling_params: { max_tokens: 3 },
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = chunksOf(events)
    expect(chunks.map((chunk) => chunk.choices[0]?.token_ids?.length)).toEqual([1, 1, 1, undefined])
    expect(chunks.map((chunk) => chunk.choices[0]?.weight_versions ?? null)).toEqual([
      null,
      null,
      [{ version: '0', start: 0, end: 3 }],
      null,
    ])
    expect(chunks[3].usage).toMatchObject({ prompt_tokens: ids.length, completion_tokens: 3 })
    expect(events.at(-1)).toBe('[DONE]')
  })

  it('is gone without scale-out', async () => {
    await using engine = await startEngine('--no-scale-out')
    for (const path of ['/v1/chat/completions/render', '/inference/v1/generate', '/v1/chat/completions/derender']) {
      expect((await refused(engine, path, {})).status).toBe(404)
    }
  })

  it('refuses ids outside the vocabulary and asks for sampling_params', async () => {
    await using engine = await startEngine()
    expect(
      (await refused(engine, '/inference/v1/generate', { token_ids: [999_999], sampling_params: {} })).body.error.param,
    ).toBe('token_ids')
    expect((await refused(engine, '/inference/v1/generate', { token_ids: [1] })).body.error.param).toBe(
      'sampling_params',
    )
  })
})
