import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { draw } from '../src/generation/sampling.ts'
import { mulberry32, seedOf } from '../src/policy/prng.ts'
import { TrieWalk } from '../src/policy/trie.ts'
import { INSTRUCTION, SCRIPT, post, refused, SHELL_TOOL, startEngine } from './support.ts'
import type { SamplingParams } from '../src/generation/sampling.ts'
import type { AnswerCandidate } from '../src/policy/trie.ts'
import type { Loose } from './support.ts'

const PARAMS: SamplingParams = {
  n: 1,
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  seed: 1,
  stop: [],
  stopTokenIds: [],
  includeStop: false,
  skipSpecial: true,
  topLogprobs: 5,
}
const END = 99
const candidates = fc
  .array(
    fc.record({ ids: fc.array(fc.nat(3), { maxLength: 5 }), logit: fc.double({ min: -3, max: 3, noNaN: true }) }),
    { minLength: 1, maxLength: 8 },
  )
  .map((list) =>
    list.map(({ ids, logit }, at): AnswerCandidate => ({
      ids: Int32Array.from([...ids, END]),
      logit: () => logit,
      name: String(at),
    })),
  )

/** Walks the whole trie; returns the probability of every full sequence, checking each node on the way. */
function sequences(given: readonly AnswerCandidate[], path: number[] = []): Map<string, number> {
  const walk = new TrieWalk(given)
  for (const id of path) walk.advance(id)
  const next = walk.next()
  expect(next.reduce((sum, token) => sum + token.probability, 0)).toBeCloseTo(1, 9)
  const found = new Map<string, number>()
  for (const token of next) {
    const tails = token.id === END ? new Map([['', 1]]) : sequences(given, [...path, token.id])
    for (const [tail, probability] of tails) found.set(`${token.id} ${tail}`, probability * token.probability)
  }
  return found
}

describe('the trie', () => {
  it('sums to one at each node, and each answer gets its softmax share', () => {
    fc.assert(
      fc.property(candidates, (given) => {
        const found = sequences(given)
        const total = given.reduce((sum, candidate) => sum + Math.exp(candidate.logit()), 0)
        const shares = new Map<string, number>()
        for (const candidate of given) {
          const key = [...candidate.ids].map((id) => `${id} `).join('')
          shares.set(key, (shares.get(key) ?? 0) + Math.exp(candidate.logit()) / total)
        }
        for (const [key, share] of shares) expect(found.get(key)).toBeCloseTo(share, 9)
        expect(found.size).toBe(shares.size)
      }),
    )
  })

  it('follows weights that change in the middle of an answer', () => {
    let weight = 0
    const walk = new TrieWalk([
      { ids: Int32Array.of(1, 2, END), logit: () => weight, name: 'a' },
      { ids: Int32Array.of(1, 3, END), logit: () => 0, name: 'b' },
    ])
    walk.advance(1)
    expect(walk.next().map((token) => token.probability)).toEqual([0.5, 0.5])
    weight = Math.log(3)
    const after = walk.next()
    expect(after.map((token) => token.id)).toEqual([2, 3])
    expect(after[0]?.probability).toBeCloseTo(0.75, 9)
  })
})

describe('sampling', () => {
  const next = [
    { id: 1, probability: 0.6 },
    { id: 2, probability: 0.3 },
    { id: 3, probability: 0.1 },
  ]
  const rate = (params: Partial<SamplingParams>, id: number): number => {
    const random = mulberry32(seedOf('rate', id))
    let hits = 0
    for (let i = 0; i < 20_000; i++) if (draw(next, { ...PARAMS, ...params }, 'raw_logprobs', random).id === id) hits++
    return hits / 20_000
  }

  it('draws at the rate that the logprob says', () => {
    expect(rate({}, 1)).toBeCloseTo(0.6, 1)
    expect(rate({}, 3)).toBeCloseTo(0.1, 1)
    expect(Math.exp(draw(next, PARAMS, 'raw_logprobs', () => 0.7).logprob)).toBeCloseTo(0.3, 6)
  })

  it.each([
    ['temperature 2 flattens', { temperature: 2 }, 3, 0.1 ** 0.5 / (0.6 ** 0.5 + 0.3 ** 0.5 + 0.1 ** 0.5)],
    ['top_p drops the tail', { topP: 0.85 }, 3, 0],
    ['top_k keeps the best', { topK: 1 }, 1, 1],
    ['min_p drops what is far below the best', { minP: 0.4 }, 2, 1 / 3],
    ['temperature 0 is greedy', { temperature: 0 }, 1, 1],
    ['temperature nearly 0 is as well', { temperature: 1e-4 }, 1, 1],
  ])('%s', (_name, params, id, expected) => {
    expect(rate(params, id)).toBeCloseTo(expected, 1)
  })

  it('reports raw logprobs whatever shaped the draw, and processed ones where the server is set so', () => {
    const params = { ...PARAMS, topP: 0.8, temperature: 2 }
    const heated = [0.6 ** 0.5, 0.3 ** 0.5, 0.1 ** 0.5]
    const total = heated.reduce((sum, value) => sum + value, 0)
    expect(draw(next, params, 'raw_logprobs', () => 0).logprob).toBeCloseTo(Math.log(0.6), 6)
    expect(draw(next, params, 'temperature_logprobs', () => 0).logprob).toBeCloseTo(
      Math.log((heated[0] ?? 0) / total),
      6,
    )
    const kept = (heated[0] ?? 0) + (heated[1] ?? 0)
    expect(draw(next, params, 'processed_logprobs', () => 0).logprob).toBeCloseTo(
      Math.log((heated[0] ?? 0) / (kept / total) / total),
      6,
    )
  })
})

const ask = {
  messages: [{ role: 'user', content: INSTRUCTION }],
  tools: [SHELL_TOOL],
  return_token_ids: true,
  logprobs: true,
}

describe('seeds and weights', () => {
  it('gives the same answer to the same seed, and the same run to the same engine seed', async () => {
    const run = async (flags: string[], body: object): Promise<string[]> => {
      await using engine = await startEngine(...flags)
      await post(engine, '/control/scripts', SCRIPT)
      const answers: string[] = []
      for (let i = 0; i < 12; i++)
        answers.push((await post(engine, '/v1/chat/completions', { ...ask, ...body })).choices[0].token_ids.join())
      return answers
    }
    expect(new Set(await run([], { seed: 5 })).size).toBe(1)
    const first = await run(['--seed', '1'], {})
    expect(await run(['--seed', '1'], {})).toEqual(first)
    expect(new Set(first).size).toBe(2)
    expect(await run(['--seed', '2'], {})).not.toEqual(first)
  })

  it('can be improved: weights move the logprobs and count the version up', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    const likelihood = async (): Promise<number> => {
      const answer = await post(engine, '/v1/chat/completions', { ...ask, temperature: 0 })
      return answer.choices[0].logprobs.content.reduce((sum: number, entry: Loose) => sum + entry.logprob, 0)
    }
    expect(Math.exp(await likelihood())).toBeCloseTo(1 / (1 + Math.exp(-0.5)), 5)
    expect(
      await post(engine, '/control/weights', { instruction: INSTRUCTION, weights: { good: 4, hasty: 0 } }),
    ).toEqual({ weightVersion: '1', changed: 2 })
    expect(Math.exp(await likelihood())).toBeCloseTo(1 / (1 + Math.exp(-4)), 5)
  })

  it.each([
    ['an unknown candidate', { instruction: INSTRUCTION, weights: { nobody: 1 } }, 400],
    ['an unknown instruction', { instruction: 'other', weights: {} }, 404],
    ['no weights', { instruction: INSTRUCTION }, 400],
  ])('refuses %s and changes nothing', async (_name, body, status) => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    expect((await refused(engine, '/control/weights', body)).status).toBe(status)
    expect(engine.engine.weightVersion).toBe('0')
  })
})

/** Parameter schemas in the manner of the harnesses named; shortened, not copied. */
const HARNESS_TOOLS: Record<string, { tools: Loose[]; name: string; args: Loose }> = {
  'Qwen Code': {
    tools: [
      {
        name: 'read_file',
        parameters: { type: 'object', properties: { absolute_path: { type: 'string' } }, required: ['absolute_path'] },
      },
      {
        name: 'run_shell_command',
        parameters: {
          type: 'object',
          properties: {
            command: { type: 'string' },
            is_background: { type: 'boolean' },
            timeout: { type: 'number' },
            description: { type: 'string' },
            directory: { type: 'string' },
          },
          required: ['command', 'is_background'],
        },
      },
    ],
    name: 'run_shell_command',
    args: { command: 'echo hi', is_background: false },
  },
  'Claude Code': {
    tools: [
      {
        name: 'Task',
        parameters: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
      },
      {
        name: 'Bash',
        parameters: {
          type: 'object',
          properties: {
            command: { type: 'string' },
            timeout: { type: 'number' },
            description: { type: 'string' },
            run_in_background: { type: 'boolean' },
          },
          required: ['command', 'description'],
        },
      },
      {
        name: 'BashOutput',
        parameters: { type: 'object', properties: { bash_id: { type: 'string' } }, required: ['bash_id'] },
      },
    ],
    name: 'Bash',
    args: { command: 'echo hi', description: 'Run echo hi' },
  },
  'Codex, older': {
    tools: [
      {
        name: 'shell',
        parameters: {
          type: 'object',
          properties: { command: { type: 'array', items: { type: 'string' } }, workdir: { type: 'string' } },
          required: ['command'],
        },
      },
    ],
    name: 'shell',
    args: { command: ['bash', '-lc', 'echo hi'] },
  },
  'Codex, newer': {
    tools: [
      {
        name: 'apply_patch',
        parameters: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
      },
      {
        name: 'exec_command',
        parameters: {
          type: 'object',
          properties: { cmd: { type: 'string' }, yield_time_ms: { type: 'number' } },
          required: ['cmd'],
        },
      },
    ],
    name: 'exec_command',
    args: { cmd: 'echo hi' },
  },
  Cline: {
    tools: [
      {
        name: 'read_files',
        parameters: {
          type: 'object',
          properties: { files: { type: 'array', items: { type: 'object' } } },
          required: ['files'],
        },
      },
      {
        name: 'run_commands',
        parameters: {
          type: 'object',
          properties: { commands: { type: 'array', items: { type: 'string' } } },
          required: ['commands'],
        },
      },
    ],
    name: 'run_commands',
    args: { commands: ['echo hi'] },
  },
  'a shell among tools with a command of their own': {
    tools: [
      {
        name: 'editor',
        parameters: {
          type: 'object',
          properties: { command: { type: 'string', enum: ['view', 'create'] } },
          required: ['command'],
        },
      },
      {
        name: 'bash',
        parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
      },
    ],
    name: 'bash',
    args: { command: 'echo hi' },
  },
}

describe('shell steps', () => {
  const script = {
    instruction: INSTRUCTION,
    candidates: [{ name: 'only', steps: [{ shell: 'echo hi' }, { say: 'ok' }] }],
  }

  it('find the offered tools after a list under the same tags in the system prompt, as pi writes one', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', script)
    const system = 'You are an assistant.\n\n<tools>\n- read: Read file contents\n- bash: Execute commands\n</tools>'
    const answer = await post(engine, '/v1/chat/completions', {
      ...ask,
      messages: [{ role: 'system', content: system }, ...ask.messages],
      tools: HARNESS_TOOLS['Claude Code']?.tools.map((fn) => ({ type: 'function', function: fn })),
    })
    expect(answer.choices[0].message.tool_calls).toMatchObject([{ function: { name: 'Bash' } }])
  })

  it.each(Object.entries(HARNESS_TOOLS))('find the shell of %s', async (_name, { tools, name, args }) => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', script)
    const answer = await post(engine, '/v1/chat/completions', {
      ...ask,
      tools: tools.map((fn) => ({ type: 'function', function: fn })),
    })
    const [call] = answer.choices[0].message.tool_calls
    expect({ name: call.function.name, args: JSON.parse(call.function.arguments) }).toEqual({ name, args })
  })

  it('name the problem when no offered tool takes a command', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', script)
    const tools = [
      {
        type: 'function',
        function: { name: 'search', parameters: { type: 'object', properties: { query: { type: 'string' } } } },
      },
    ]
    const { status, body } = await refused(engine, '/v1/chat/completions', { ...ask, tools })
    expect(status).toBe(400)
    expect(body.error).toMatchObject({
      type: 'SCRIPT_NO_SHELL_TOOL',
      code: 400,
      message: expect.stringContaining('offered: search'),
    })
  })

  it('leave a forced tool of the harness alone: its schema is filled in', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', script)
    const parameters = {
      type: 'object',
      properties: { next_speaker: { type: 'string', enum: ['user', 'model'] } },
      required: ['next_speaker'],
    }
    const answer = await post(engine, '/v1/chat/completions', {
      ...ask,
      tools: [{ type: 'function', function: { name: 'respond_in_schema', parameters } }],
      tool_choice: { type: 'function', function: { name: 'respond_in_schema' } },
    })
    const [call] = answer.choices[0].message.tool_calls
    expect(call.function).toEqual({ name: 'respond_in_schema', arguments: '{"next_speaker": "user"}' })
  })

  it('sit beside tool steps, whose arguments keep their numbers', async () => {
    await using engine = await startEngine()
    const body = `{"instruction": ${JSON.stringify(INSTRUCTION)}, "candidates": [{"name": "t", "steps": [{"tool": "click", "args": {"x": 1.0, "y": 2}}]}]}`
    await fetch(`${engine.url}/control/scripts`, { method: 'POST', body })
    const tools = [
      { type: 'function', function: { name: 'click', parameters: { type: 'object', properties: {}, required: [] } } },
    ]
    const answer = await post(engine, '/v1/chat/completions', { ...ask, tools })
    expect(answer.choices[0].message.tool_calls[0].function).toEqual({ name: 'click', arguments: '{"x": 1.0, "y": 2}' })
  })
})

describe('scripts', () => {
  it.each([
    ['no instruction', { candidates: [{ name: 'a', steps: [] }] }, 'instructionSha256'],
    [
      'a digest of something else',
      { instruction: 'x', instructionSha256: '0'.repeat(64), candidates: [{ steps: [] }] },
      'instructionSha256',
    ],
    ['no candidates', { instruction: 'x', candidates: [] }, 'candidates'],
    [
      'twice the same name',
      {
        instruction: 'x',
        candidates: [
          { name: 'a', steps: [] },
          { name: 'a', steps: [] },
        ],
      },
      'candidates',
    ],
    [
      'a step of no kind',
      { instruction: 'x', candidates: [{ name: 'a', steps: [{ dance: 1 }] }] },
      'candidates.0.steps.0',
    ],
  ])('refuse %s', async (_name, body, param) => {
    await using engine = await startEngine()
    const answer = await refused(engine, '/control/scripts', body)
    expect(answer.status).toBe(400)
    expect(answer.body.error.param).toBe(param)
    expect(engine.engine.scripts.list()).toEqual([])
  })
})
