import { describe, expect, it } from 'vitest'
import {
  chunksOf,
  generations,
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

const ASK = {
  messages: [{ role: 'user', content: INSTRUCTION }],
  tools: [SHELL_TOOL],
  seed: 3,
  return_token_ids: true,
  logprobs: true,
  stream_options: { include_usage: true },
}

async function faulty(fault: object, ...flags: string[]): ReturnType<typeof startEngine> {
  const engine = await startEngine(...flags)
  await post(engine, '/control/scripts', SCRIPT)
  await post(engine, '/control/faults', fault)
  return engine
}

describe('tokens and logprobs', () => {
  it('non_canonical: other ids for the same text, journaled as they were', async () => {
    await using engine = await faulty({ kind: 'non_canonical' })
    const odd = await post(engine, '/v1/chat/completions', ASK)
    const plain = await post(engine, '/v1/chat/completions', ASK)
    expect(odd.choices[0].message.content).toBe(plain.choices[0].message.content)
    expect(odd.choices[0].token_ids.length).toBeGreaterThan(plain.choices[0].token_ids.length)
    const { prompt: text } = await post(engine, '/detokenize', { tokens: odd.choices[0].token_ids.slice(0, -1) })
    expect((await post(engine, '/tokenize', { prompt: text })).tokens).not.toEqual(
      odd.choices[0].token_ids.slice(0, -1),
    )
    expect(generations(engine)[0]?.choices[0]?.tokenIds).toEqual(odd.choices[0].token_ids)
  })

  it('drop_token_ids: every n-th chunk has none, the journal has all', async () => {
    await using engine = await faulty({ kind: 'drop_token_ids', every: 2 })
    const chunks = chunksOf((await postStream(engine, '/v1/chat/completions', { ...ASK, stream: true })).events)
    const [joined] = joinChat(chunks)
    const truth = generations(engine)[0]?.choices[0]?.tokenIds ?? []
    expect(joined?.ids).toEqual(truth.filter((_id, at) => (at + 1) % 2 !== 0))
    expect(chunks.at(-1).usage.completion_tokens).toBe(truth.length)
  })

  it.each([
    ['NaN', 'NaN'],
    ['null', 'null'],
    ['-9999', '-9999.0'],
  ])('bad_logprob %s: stands bare in the bytes, the journal has the true one', async (value, shown) => {
    await using engine = await faulty({ kind: 'bad_logprob', value, token: 2 })
    const response = await fetch(`${engine.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(ASK) })
    const text = await response.text()
    expect(text).toContain(`"logprob":${shown},`)
    expect(
      generations(engine)[0]?.choices[0]?.logprobs.every((logprob) => Number.isFinite(logprob) && logprob > -100),
    ).toBe(true)
    if (shown === 'NaN') expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError)
  })

  it('null_logprobs: none come although they were asked for', async () => {
    await using engine = await faulty({ kind: 'null_logprobs' })
    expect((await post(engine, '/v1/chat/completions', ASK)).choices[0].logprobs).toBeNull()
  })

  it('wrong_usage: counts are off by what was ordered', async () => {
    await using engine = await faulty({ kind: 'wrong_usage', by: 5 })
    const answer = await post(engine, '/v1/chat/completions', ASK)
    expect(answer.usage.completion_tokens).toBe(answer.choices[0].token_ids.length + 5)
  })

  it('truncate_prompt: the engine saw less than was sent, and its ids show it', async () => {
    await using engine = await faulty({ kind: 'truncate_prompt', keep: 20 })
    const cut = await post(engine, '/v1/chat/completions', ASK)
    const whole = await post(engine, '/v1/chat/completions', ASK)
    expect(cut.prompt_token_ids).toEqual(whole.prompt_token_ids.slice(-20))
    expect(cut.usage.prompt_tokens).toBe(20)
  })

  it('weight_update: the version changes in the middle of the answer and the spans say where', async () => {
    await using engine = await faulty({ kind: 'weight_update', token: 4, version: 'new' })
    const rendered = await post(engine, '/v1/chat/completions/render', ASK)
    const [choice] = (await post(engine, '/inference/v1/generate', { ...rendered, stream: false })).choices
    expect(choice.weight_versions).toEqual([
      { version: '0', start: 0, end: 4 },
      { version: 'new', start: 4, end: choice.token_ids.length },
    ])
    expect(generations(engine)[0]).toMatchObject({ weightVersionBefore: '0', weightVersionAfter: 'new' })
  })
})

describe('refusals', () => {
  it.each([
    [{ kind: 'http_error', status: 500 }, 500, null],
    [{ kind: 'http_error', status: 429, retryAfterSeconds: 2 }, 429, '2'],
  ])('%j', async (fault, status, retryAfter) => {
    await using engine = await faulty(fault)
    const answer = await refused(engine, '/v1/chat/completions', ASK)
    expect(answer.status).toBe(status)
    expect(answer.headers.get('retry-after')).toBe(retryAfter)
    expect(answer.body.error.code).toBe(status)
    expect((await post(engine, '/v1/chat/completions', ASK)).choices).toHaveLength(1)
  })
})

describe('death of a stream', () => {
  const stream = { ...ASK, stream: true }
  it('before_headers: no answer at all', async () => {
    await using engine = await faulty({ kind: 'die', at: 'before_headers' })
    await expect(postStream(engine, '/v1/chat/completions', stream)).rejects.toThrow()
  })

  it.each([
    ['after_headers', 0, false, false],
    ['before_finish', undefined, false, false],
    ['before_usage', undefined, true, false],
    ['before_done', undefined, true, true],
  ])('%s', async (at, count, finished, usage) => {
    await using engine = await faulty({ kind: 'die', at })
    const { events, broken } = await postStream(engine, '/v1/chat/completions', stream)
    expect(broken).toBe(true)
    const chunks = chunksOf(events)
    if (count !== undefined) expect(chunks).toHaveLength(count)
    else expect(chunks.length).toBeGreaterThan(5)
    expect(chunks.some((chunk) => chunk.choices[0]?.finish_reason === 'tool_calls')).toBe(finished)
    expect(chunks.some((chunk) => (chunk.usage ?? null) !== null)).toBe(usage)
    expect(events).not.toContain('[DONE]')
    await expect.poll(() => engine.engine.journal.lines().at(-1)).toMatchObject({ kind: 'delivery', ended: 'died' })
  })

  it('mid_token: inside an event, and the journal has what was drawn until then', async () => {
    await using engine = await faulty({ kind: 'die', at: 'mid_token', token: 4 })
    const { raw, broken } = await postStream(engine, '/v1/chat/completions', stream)
    expect(broken).toBe(true)
    expect(raw.endsWith('\n\n')).toBe(false)
    expect(raw.split('\n\n')).toHaveLength(5)
    await expect.poll(() => generations(engine)[0]?.choices[0]?.finishReason).toBe('abort')
    expect(generations(engine)[0]?.choices[0]?.tokenIds).toHaveLength(4)
  })

  it('cuts a whole answer in half', async () => {
    await using engine = await faulty({ kind: 'die', at: 'mid_token' })
    await expect(post(engine, '/v1/chat/completions', ASK)).rejects.toThrow()
  })
})

describe('stalls', () => {
  // An hour: whatever arrives before the engine is told to give up did not wait for the stall.
  const hour = 3600
  const stream = { ...ASK, stream: true }

  it('before_first_byte: not even headers come', async () => {
    await using engine = await faulty({ kind: 'stall', at: 'before_first_byte', seconds: hour })
    let answered = false
    const answer = postStream(engine, '/v1/chat/completions', stream).finally(() => (answered = true))
    await expect.poll(() => engine.engine.flights.size).toBe(1)
    await get(engine, '/control')
    expect(answered).toBe(false)
    await post(engine, '/abort_requests', {})
    expect(joinChat(chunksOf((await answer).events))[0]).toMatchObject({ ids: [], finish: 'abort' })
  })

  it('mid_stream: the tokens before it come, those after it do not', async () => {
    await using engine = await faulty({ kind: 'stall', at: 'mid_stream', seconds: hour, token: 3 })
    const response = await fetch(`${engine.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(stream) })
    const reader = response.body?.getReader()
    let raw = ''
    while ((raw.match(/"token_ids":\[\d/g) ?? []).length < 2)
      raw += new TextDecoder().decode((await reader?.read())?.value)
    await post(engine, '/abort_requests', {})
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
      raw += new TextDecoder().decode(part.value)
    expect(raw.match(/"token_ids":\[\d/g)).toHaveLength(2)
    expect(raw).toContain('"finish_reason":"abort"')
  })
})

describe('orders', () => {
  it('strike the calls they name, as often as they say', async () => {
    await using engine = await startEngine('--fault', '{"kind":"http_error","count":2,"match":{"session":"s-1"}}')
    const status = async (session: string): Promise<number> => {
      const response = await fetch(`${engine.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(ASK),
        headers: { 'x-session-id': session },
      })
      await response.text()
      return response.status
    }
    expect([await status('s-2'), await status('s-1'), await status('s-1'), await status('s-1')]).toEqual([
      200, 500, 500, 200,
    ])
  })

  it('strike the n-th call with an instruction only', async () => {
    await using engine = await faulty({ kind: 'http_error', match: { instruction: INSTRUCTION, nth: 2 } })
    const status = async (messages: Loose): Promise<number> => {
      const response = await fetch(`${engine.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ ...ASK, messages }),
      })
      await response.text()
      return response.status
    }
    const other = [{ role: 'user', content: 'something else' }]
    expect([
      await status(ASK.messages),
      await status(other),
      await status(ASK.messages),
      await status(ASK.messages),
    ]).toEqual([200, 200, 500, 200])
    expect((await get(engine, '/control/faults')).faults[0]).toMatchObject({ seen: 3, struck: 1 })
  })

  it('are refused when nobody knows them', async () => {
    await using engine = await startEngine()
    expect((await refused(engine, '/control/faults', { kind: 'earthquake' })).body.error.param).toBe('kind')
    expect((await refused(engine, '/control/faults', { kind: 'die', at: 'noon' })).body.error.param).toBe('at')
    await expect(startEngine('--fault', 'earthquake')).rejects.toThrow(/earthquake/)
  })
})
