import { describe, expect, it } from 'vitest'
import { chunksOf, get, INSTRUCTION, PLAY, post, postStream, refused, SHELL_TOOL, startEngine } from './support.ts'
import type { Loose } from './support.ts'

// SGLang shapes transcribed from sgl-project/sglang: srt/entrypoints/openai/protocol.py at 004c82e0,
// srt/managers/tokenizer_manager.py (_handle_batch_output), docs.sglang.io "Native APIs". Not recordings.

const CHAT = { messages: [{ role: 'user', content: INSTRUCTION }], tools: [SHELL_TOOL], seed: 3 }

async function sglang(...flags: string[]): ReturnType<typeof startEngine> {
  const engine = await startEngine('--wire', 'sglang', ...flags)
  await post(engine, '/control/plays', PLAY)
  return engine
}

describe('wire sglang', () => {
  it('generates from input_ids with rows of [logprob, id, text]', async () => {
    await using engine = await sglang()
    const { tokens } = await post(engine, '/tokenize', { messages: CHAT.messages, tools: CHAT.tools })
    const answer = await post(engine, '/generate', {
      input_ids: tokens,
      rid: 'r-1',
      sampling_params: { max_new_tokens: 400, sampling_seed: 3, skip_special_tokens: false },
      return_logprob: true,
      top_logprobs_num: 2,
    })
    expect(Object.keys(answer)).toEqual(['text', 'output_ids', 'meta_info'])
    expect(answer.meta_info).toMatchObject({
      id: 'r-1',
      finish_reason: { type: 'stop', matched: answer.output_ids.at(-1) },
      prompt_tokens: tokens.length,
      completion_tokens: answer.output_ids.length,
      cached_tokens: 0,
      weight_version: '0',
      weight_versions: [{ version: '0', start: 0, end: answer.output_ids.length }],
    })
    const rows = answer.meta_info.output_token_logprobs
    expect(rows.map((row: Loose) => row[1])).toEqual(answer.output_ids)
    expect(rows.every((row: Loose) => row.length === 3 && row[2] === null)).toBe(true)
    expect((await post(engine, '/detokenize', { tokens: answer.output_ids, skip_special_tokens: true })).text).toBe(
      answer.text,
    )
  })

  it('stops after 128 tokens unless told otherwise, and streams everything so far in each event', async () => {
    await using engine = await sglang()
    await post(engine, '/control/plays', {
      instruction: INSTRUCTION,
      candidates: [{ name: 'long', steps: [{ say: 'word '.repeat(300) }] }],
    })
    const { tokens } = await post(engine, '/tokenize', { messages: CHAT.messages })
    const answer = await post(engine, '/generate', { input_ids: tokens, sampling_params: {} })
    expect(answer.meta_info.finish_reason).toEqual({ type: 'length', length: 128 })
    const { events } = await postStream(engine, '/generate', {
      input_ids: tokens,
      sampling_params: { max_new_tokens: 5 },
      stream: true,
      return_logprob: true,
    })
    const chunks = chunksOf(events)
    expect(chunks.map((chunk) => chunk.output_ids.length)).toEqual([1, 2, 3, 4, 5])
    expect(chunks.map((chunk) => chunk.meta_info.output_token_logprobs.length)).toEqual([1, 2, 3, 4, 5])
    expect(chunks.slice(0, -1).every((chunk) => chunk.meta_info.finish_reason === null)).toBe(true)
    expect(chunks.at(-1).text.startsWith(chunks[2].text)).toBe(true)
    expect(events.at(-1)).toBe('[DONE]')
  })

  it('chats by input_ids and gives ids and rows in meta_info', async () => {
    await using engine = await sglang()
    const { tokens } = await post(engine, '/tokenize', { messages: CHAT.messages, tools: CHAT.tools })
    const ask = { ...CHAT, logprobs: true, return_meta_info: true, return_prompt_token_ids: true }
    const rendered = await post(engine, '/v1/chat/completions', ask)
    const given = await post(engine, '/v1/chat/completions', {
      ...ask,
      messages: [{ role: 'user', content: 'ignored' }],
      input_ids: tokens,
    })
    const [choice] = given.choices
    expect(choice.prompt_token_ids).toEqual(tokens)
    expect(choice.meta_info.output_token_logprobs).toEqual(rendered.choices[0].meta_info.output_token_logprobs)
    expect(choice.message).toEqual({
      role: 'assistant',
      content: rendered.choices[0].message.content,
      reasoning_content: rendered.choices[0].message.reasoning_content,
      tool_calls: [
        {
          id: expect.stringMatching(/^call_[0-9a-f]{24}$/),
          index: 0,
          type: 'function',
          function: rendered.choices[0].message.tool_calls[0].function,
        },
      ],
    })
    expect(choice).toMatchObject({ finish_reason: 'tool_calls', matched_stop: expect.any(Number) })
  })

  it('refuses ids in a chat stream but gives them in one sglext event when headers ask', async () => {
    await using engine = await sglang()
    const answer = await refused(engine, '/v1/chat/completions', { ...CHAT, stream: true, return_meta_info: true })
    expect(answer).toMatchObject({
      status: 400,
      body: { object: 'error', code: 400, message: expect.stringContaining('not supported with streaming') },
    })
    const { events } = await postStream(engine, '/v1/chat/completions', {
      ...CHAT,
      stream: true,
      return_input_ids: true,
      return_output_ids: true,
      stream_options: { include_usage: true },
    })
    const chunks = chunksOf(events)
    const ext = chunks.at(-1).sglext
    const line = engine.engine.journal.lines().find((entry) => entry.kind === 'generation')
    expect(ext).toEqual({
      input_ids: line?.kind === 'generation' ? line.promptTokenIds : [],
      output_ids: line?.kind === 'generation' ? [line.choices[0]?.tokenIds] : [],
    })
    expect(chunks.filter((chunk) => chunk.choices[0]?.finish_reason === 'tool_calls')).toHaveLength(1)
    const delta = chunks.find((chunk) => chunk.choices[0]?.delta.tool_calls !== null)?.choices[0].delta.tool_calls[0]
    expect(delta).toEqual({
      id: expect.stringMatching(/^call_/),
      index: 0,
      type: 'function',
      function: { name: 'bash', arguments: expect.any(String) },
    })
  })

  it('reports logprobs after temperature', async () => {
    await using engine = await sglang()
    const { tokens } = await post(engine, '/tokenize', { messages: CHAT.messages, tools: CHAT.tools })
    const total = async (temperature: number): Promise<number> => {
      const answer = await post(engine, '/generate', {
        input_ids: tokens,
        return_logprob: true,
        sampling_params: { temperature, max_new_tokens: 400, top_k: 1 },
      })
      return answer.meta_info.output_token_logprobs.reduce((sum: number, row: Loose) => sum + row[0], 0)
    }
    expect(Math.exp(await total(1))).toBeCloseTo(1 / (1 + Math.exp(-0.5)), 5)
    expect(Math.exp(await total(2))).toBeCloseTo(1 / (1 + Math.exp(-0.25)), 5)
  })

  it('pauses, continues, aborts and takes versions', async () => {
    await using engine = await sglang('--tokens-per-second', '30')
    const running = post(engine, '/v1/chat/completions', {
      ...CHAT,
      rid: 'mine',
      return_meta_info: true,
      logprobs: true,
    })
    await expect.poll(() => engine.engine.flights.size).toBe(1)
    expect(await post(engine, '/pause_generation', { mode: 'in_place' })).toMatchObject({ status: 'ok' })
    expect(
      await post(engine, '/update_weights_from_disk', { model_path: 'x', weight_version: 'v2', flush_cache: true }),
    ).toMatchObject({ success: true })
    expect(await get(engine, '/get_weight_version')).toEqual({ weight_version: 'v2' })
    await post(engine, '/continue_generation', {})
    expect((await running).choices[0].meta_info.weight_version).toBe('v2')
    const doomed = post(engine, '/v1/chat/completions', { ...CHAT, rid: 'doomed' })
    await expect.poll(() => engine.engine.flights.size).toBe(1)
    await post(engine, '/abort_request', { rid: 'doomed' })
    expect((await doomed).choices[0].finish_reason).toBe('abort')
  })

  it('has no vLLM routes', async () => {
    await using engine = await sglang()
    expect((await refused(engine, '/inference/v1/generate', {})).status).toBe(404)
  })
})

describe('wire openai', () => {
  it('gives no ids, whatever is asked, and no native routes', async () => {
    await using engine = await startEngine('--wire', 'openai')
    await post(engine, '/control/plays', PLAY)
    const answer = await post(engine, '/v1/chat/completions', { ...CHAT, return_token_ids: true, logprobs: true })
    expect(JSON.stringify(answer)).not.toMatch(/token_ids|stop_reason|kv_transfer/)
    expect(answer.choices[0].logprobs.content.length).toBe(answer.usage.completion_tokens)
    const { raw } = await postStream(engine, '/v1/chat/completions', { ...CHAT, stream: true, return_token_ids: true })
    expect(raw).not.toMatch(/token_ids|stop_reason/)
    for (const path of ['/tokenize', '/inference/v1/generate', '/pause'])
      expect((await refused(engine, path, {})).status).toBe(404)
    expect((await get(engine, '/v1/models')).data[0]).not.toHaveProperty('max_model_len')
  })

  it('gives no logprobs when told so', async () => {
    await using engine = await startEngine('--wire', 'openai', '--no-logprobs')
    const answer = await post(engine, '/v1/chat/completions', { ...CHAT, logprobs: true })
    expect(answer.choices[0].logprobs).toBeNull()
  })
})
