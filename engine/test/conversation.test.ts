import { describe, expect, it } from 'vitest'
import { profileNames } from '../src/profiles.ts'
import { generations, INSTRUCTION, SCRIPT, post, SHELL_TOOL, startEngine } from './support.ts'
import type { Loose } from './support.ts'

/** Scripts a whole conversation as a plain harness does: echo what came, answer each call. */
async function converse(
  engine: Loose,
  options: { seed: number; first?: Loose[]; echo?: (message: Loose) => Loose[] },
): Promise<Loose[]> {
  const messages: Loose[] = options.first ?? [
    { role: 'system', content: 'You are a careful agent.' },
    { role: 'user', content: `<system-reminder>be brief</system-reminder>\nTask:\n${INSTRUCTION}\n\nGo.` },
  ]
  const answers: Loose[] = []
  for (let turn = 0; turn < 8; turn++) {
    const answer = await post(engine, '/v1/chat/completions', {
      model: engine.engine.profile.model,
      messages,
      tools: [SHELL_TOOL],
      return_token_ids: true,
      logprobs: true,
      seed: options.seed,
    })
    answers.push(answer)
    const { message } = answer.choices[0]
    messages.push(...(options.echo ?? ((m: Loose) => [m]))(message))
    for (const call of message.tool_calls ?? []) {
      messages.push({ role: 'tool', tool_call_id: call.id, content: `output of ${call.function.arguments}` })
    }
    if (message.tool_calls === undefined) break
  }
  return answers
}

function commands(answers: readonly Loose[]): string[] {
  return answers.flatMap((answer) =>
    (answer.choices[0].message.tool_calls ?? []).map((call: Loose) => JSON.parse(call.function.arguments).command),
  )
}

const GOOD = ['head -3 /app/users.csv', 'wc -l < /app/users.csv', 'ls /app', 'echo 41 > /app/count.txt']
const HASTY = ['wc -l < /app/users.csv > /app/count.txt']

describe.each(profileNames)('%s', (model) => {
  it('runs one candidate to its end, each prompt extending the one before token for token', async () => {
    await using engine = await startEngine('--model', model)
    await post(engine, '/control/scripts', SCRIPT)
    const seen = new Set<string>()
    for (const seed of [1, 2, 3, 4, 5]) {
      const answers = await converse(engine, { seed })
      const ran = commands(answers)
      expect([GOOD, HASTY]).toContainEqual(ran)
      seen.add(ran.join(';'))
      for (const [at, answer] of answers.entries()) {
        const next = answers[at + 1]
        if (next === undefined) continue
        const held = [...answer.prompt_token_ids, ...answer.choices[0].token_ids]
        expect(next.prompt_token_ids.slice(0, held.length)).toEqual(held)
      }
      expect(answers.at(-1).choices[0].finish_reason).toBe('stop')
    }
    expect(seen.size).toBe(2)
  })

  it('keeps its place when the harness splits parallel calls into messages and drops thinking', async () => {
    await using engine = await startEngine('--model', model)
    await post(engine, '/control/scripts', { ...SCRIPT, candidates: SCRIPT.candidates.slice(0, 1) })
    const answers = await converse(engine, {
      seed: 1,
      echo: (message) => {
        const calls = message.tool_calls ?? []
        if (calls.length === 0) return [{ role: 'assistant', content: message.content }]
        return calls.map((call: Loose, at: number) => ({
          role: 'assistant',
          content: at === 0 ? message.content : null,
          tool_calls: [call],
        }))
      },
    })
    expect(commands(answers)).toEqual(GOOD)
  })
})

describe('a script of answers in text', () => {
  it('goes on by the number of answers, and stays at its last', async () => {
    await using engine = await startEngine()
    const { model } = engine.engine.profile
    const steps = [
      { answer: 'Action: look' },
      { think: 'Now.' },
      { answer: 'Action: click' },
      { answer: 'Action: end' },
    ]
    const ask = { role: 'user', content: 'Click the box in the middle.' }
    await post(engine, '/control/scripts', { instruction: ask.content, candidates: [{ name: 'only', steps }] })
    const said: string[] = []
    for (let turn = 0; turn < 4; turn += 1) {
      const before = said.flatMap((content) => [
        { role: 'assistant', content },
        { role: 'user', content: 'The screen.' },
      ])
      const body = await post(engine, '/v1/chat/completions', { model, messages: [ask, ...before], seed: 1 })
      said.push(body.choices[0].message.content)
    }
    expect(said).toEqual(['Action: look', 'Action: click', 'Action: end', 'Action: end'])
  })
})

describe('what the policy looks at', () => {
  it('is at home in the last instruction when a conversation has several', async () => {
    await using engine = await startEngine()
    const second = 'Delete /app/count.txt again.'
    await post(engine, '/control/scripts', {
      scripts: [SCRIPT, { instruction: second, candidates: [{ name: 'rm', steps: [{ shell: 'rm /app/count.txt' }] }] }],
    })
    const first = [
      { role: 'user', content: INSTRUCTION },
      { role: 'assistant', content: 'Done.' },
      { role: 'user', content: second },
    ]
    expect(commands(await converse(engine, { seed: 1, first }))).toEqual(['rm /app/count.txt'])
  })

  it('finds an instruction known by its digest only', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    const digest = engine.engine.scripts.list()[0]?.instructionSha256
    await fetch(`${engine.url}/control/scripts`, { method: 'DELETE' })
    await post(engine, '/control/scripts', { instructionSha256: digest, candidates: SCRIPT.candidates.slice(1) })
    expect(commands(await converse(engine, { seed: 1 }))).toEqual(HASTY)
  })

  it('says that it is scripted when no script matches, with logprobs that mean something', async () => {
    await using engine = await startEngine()
    const answer = await post(engine, '/v1/chat/completions', {
      messages: [{ role: 'user', content: 'Who are you?' }],
      tools: [SHELL_TOOL],
      logprobs: true,
    })
    expect(answer.choices[0].message.content).toMatch(/scripted engine/)
    expect(answer.choices[0].logprobs.content.some((entry: Loose) => entry.logprob < 0)).toBe(true)
  })

  it('answers a title request that quotes the task with a short text', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    const answer = await post(engine, '/v1/chat/completions', {
      messages: [{ role: 'user', content: `Give a title for: ${INSTRUCTION}` }],
    })
    expect(answer.choices[0].message.content.length).toBeLessThan(40)
    expect(answer.choices[0].finish_reason).toBe('stop')
  })

  it('is the ids and nothing else: the journal holds exactly what the wire said', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    const answers = await converse(engine, { seed: 1 })
    const recorded = generations(engine)
    expect(recorded.map((line) => line.requestId)).toEqual(answers.map((answer) => answer.id))
    for (const [at, line] of recorded.entries()) {
      const choice = answers[at].choices[0]
      expect(line.promptTokenIds).toEqual(answers[at].prompt_token_ids)
      expect(line.choices[0]?.tokenIds).toEqual(choice.token_ids)
      expect(line.choices[0]?.logprobs).toEqual(choice.logprobs.content.map((entry: Loose) => entry.logprob))
    }
  })
})

describe('thinking of earlier turns', () => {
  const history = [
    { role: 'user', content: 'First question' },
    { role: 'assistant', reasoning: 'Secret thoughts.', content: 'First answer' },
    { role: 'user', content: 'Second question' },
  ]
  it.each([
    ['scripted-hermes', true],
    ['scripted-qwen3', false],
  ])('%s keeps it: %s', async (model, kept) => {
    await using engine = await startEngine('--model', model)
    const { tokens } = await post(engine, '/tokenize', { messages: history })
    const { prompt } = await post(engine, '/detokenize', { tokens })
    expect(prompt.includes('Secret thoughts.')).toBe(kept)
  })
})
