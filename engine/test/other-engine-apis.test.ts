import { describe, expect, it } from 'vitest'
import { chunksOf, get, INSTRUCTION, SCRIPT, post, postStream, refused, SHELL_TOOL, startEngine } from './support.ts'
import type { Loose } from './support.ts'

// SGLang shapes transcribed from sgl-project/sglang: srt/entrypoints/openai/protocol.py at 004c82e0,
// srt/managers/tokenizer_manager.py (_handle_batch_output), docs.sglang.io "Native APIs". Not recordings.

const CHAT = { messages: [{ role: 'user', content: INSTRUCTION }], tools: [SHELL_TOOL], seed: 3 }

async function sglang(...flags: string[]): ReturnType<typeof startEngine> {
  const engine = await startEngine('--wire', 'sglang', ...flags)
  await post(engine, '/control/scripts', SCRIPT)
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
    await post(engine, '/control/scripts', {
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
      return_input_ids_in_sglext: true,
      return_output_ids_in_sglext: true,
      stream_options: { include_usage: true },
    })
    const chunks = chunksOf(events)
    const ext = chunks.at(-2).sglext
    expect(chunks.at(-1).usage.completion_tokens).toBe(ext.output_ids[0].length)
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

  it('always opens a turn: an answer at the end becomes a user message or the text behind the opened turn', async () => {
    await using engine = await sglang()
    const ids = async (messages: Loose[], more: Loose = {}): Promise<number[]> =>
      (await post(engine, '/tokenize', { messages, ...more })).tokens
    const said = (role: string, content: Loose): Loose => ({ role, content })
    const first = said('user', 'x')
    const asUser = await ids([first, said('user', 'a')])
    expect(await ids([first, said('assistant', 'a')], { add_generation_prompt: false })).toEqual(asUser)
    const opened = await ids([first])
    const continued = await ids([first, said('assistant', 'a')], { continue_final_message: true })
    expect(continued.slice(0, opened.length)).toEqual(opened)
    expect(continued.length).toBe(opened.length + 1)
    const thinking = await ids([first], { reasoning_effort: 'high' })
    expect(thinking).toEqual(opened)
    expect(await ids([first], { reasoning_effort: 'none' })).not.toEqual(opened)
  })

  it('splits text by its parsers, and says what it was started with', async () => {
    await using engine = await sglang()
    const text = 'One moment.\n<tool_call>\n{"name": "bash", "arguments": {"command": "ls  -l"}}\n</tool_call>'
    const parsed = { text, tools: [SHELL_TOOL], tool_call_parser: 'hermes' }
    expect(await post(engine, '/parse_function_call', parsed)).toEqual({
      normal_text: expect.stringMatching(/^One moment\./),
      calls: [{ tool_index: 0, name: 'bash', parameters: '{"command": "ls  -l"}' }],
    })
    expect(
      await post(engine, '/separate_reasoning', { text: '<think>\nhm\n</think>\n\nyes', reasoning_parser: 'qwen3' }),
    ).toEqual({ reasoning_text: 'hm', text: 'yes' })
    expect(await get(engine, '/get_server_info')).toMatchObject({ version: '0.5.16', tool_call_parser: 'hermes' })
  })

  it('refuses what does not fit into the context in its own words', async () => {
    await using engine = await sglang('--max-model-len', '600')
    const long = { messages: [{ role: 'user', content: 'word '.repeat(2000) }] }
    expect((await refused(engine, '/v1/chat/completions', long)).body.message).toMatch(
      /^The input \(\d+ tokens\) is longer than the model's context length \(600 tokens\)\.$/,
    )
    const greedy = { ...CHAT, max_tokens: 590 }
    expect((await refused(engine, '/v1/chat/completions', greedy)).body.message).toMatch(
      /^Requested token count exceeds the model's maximum context length of 600 tokens\./,
    )
  })

  it('neither takes nor gives ids in chat before 0.5.13, and streams none without sglext', async () => {
    await using old = await sglang('--sglang-version', '0.5.12.post1')
    const ask = { ...CHAT, input_ids: [1, 2, 3], return_meta_info: true, return_prompt_token_ids: true, logprobs: true }
    const { choices } = await post(old, '/v1/chat/completions', ask)
    expect(Object.keys(choices[0])).toEqual(['index', 'message', 'logprobs', 'finish_reason', 'matched_stop'])
    expect((await refused(old, '/tokenize', { messages: CHAT.messages })).status).toBe(400)
    await using plain = await sglang('--no-sglext')
    const { raw } = await postStream(plain, '/v1/chat/completions', {
      ...CHAT,
      stream: true,
      return_output_ids_in_sglext: true,
    })
    expect(raw).not.toContain('sglext')
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
    await post(engine, '/control/scripts', SCRIPT)
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
