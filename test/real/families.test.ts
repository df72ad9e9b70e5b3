/** Tokenizers and templates of families on a real vLLM, before random weights: they sample ids that no tokenizer writes. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { paddock } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Conversation, converse } from './converse.ts'
import { judge, miscalled } from './rows.ts'
import { cache, type RealModel, type RealServer, startVllm } from './vllm.ts'

const turns = 6
const tokens = 24

interface Family {
  readonly model: RealModel
  readonly flags: readonly string[]
  readonly kind: 'raw' | 'processed'
}

const families: readonly Family[] = [
  {
    model: 'qwen3-tiny',
    // Random weights never end their thinking: every answer is cut off inside it.
    flags: ['--reasoning-parser', 'qwen3', '--enable-auto-tool-choice', '--tool-call-parser', 'hermes'],
    kind: 'processed',
  },
  { model: 'llama3-tiny', flags: [], kind: 'raw' },
  { model: 'mistral-tiny', flags: [], kind: 'processed' },
  { model: 'deepseek-tiny', flags: [], kind: 'raw' },
]

describe.skipIf(cache === '').each(families)('vLLM 0.32.0 with a random $model', ({ model, flags, kind }) => {
  let server: RealServer
  let directory: string
  let talk: Conversation
  beforeAll(async () => {
    directory = tempDir()
    server = await startVllm(model, [...flags, '--logprobs-mode', `${kind}_logprobs`])
    talk = await converse(server, directory, { turns, temperature: 0.7 })
  })
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]()
  })

  it('doctor tells the kind of logprobs that the flag chose', async () => {
    const { out } = await paddock(['doctor', '--no-docker', '--data', join(directory, 'doctor')], {
      ENGINE_URL: server.url,
    })
    expect(out).toContain(`logprob kind: ${kind}`)
    expect(out).toContain('strategy auto: splice, by render, generate and derender')
  })

  it('a conversation is one row: each prompt extends the one before', () => {
    expect(talk.rows).toHaveLength(1)
    expect(talk.rows[0]?.loss_mask.filter((bit) => bit === 1)).toHaveLength(turns * tokens)
  })

  it('whose ids are not those that the tokenizer writes for its texts', async () => {
    const row = talk.rows[0]
    const others = await Promise.all(
      talk.texts.map(async (prompt) => {
        const body = JSON.stringify({ model, prompt, add_special_tokens: false })
        const headers = { 'content-type': 'application/json' }
        const reply = await fetch(`${server.url}/tokenize`, { method: 'POST', headers, body })
        const { tokens: written } = (await reply.json()) as { readonly tokens: readonly number[] }
        return !`,${row?.token_ids.join(',')},`.includes(`,${written.join(',')},`)
      }),
    )
    const count = others.filter(Boolean).length
    console.log(`${model}: ${count} of ${turns} answers are not canonical`)
    expect(count).toBeGreaterThan(0)
  })

  it('whose prompts tell which tokens are words of the user', async () => {
    const [row] = talk.rows
    const spoken = row?.message_spans.filter(({ part }) => part === 'content') ?? []
    const said = await Promise.all(
      spoken.map(async ({ start, end }) => {
        const body = JSON.stringify({ model, tokens: row?.token_ids.slice(start, end) })
        const headers = { 'content-type': 'application/json' }
        const reply = await fetch(`${server.url}/detokenize`, { method: 'POST', headers, body })
        return ((await reply.json()) as { readonly prompt: string }).prompt
      }),
    )
    const asked = Array.from({ length: turns - 1 }, (_, turn) => `And number ${turn}?`)
    expect(said).toEqual(['Let us talk about tea.', ...asked])
    expect(spoken.every(({ role }) => role === 'user')).toBe(true)
    const parts = new Set(row?.message_spans.map(({ part }) => part))
    expect([...parts].toSorted()).toEqual(['answer', 'content', 'scaffold'])
  })

  it('agrees with an independent forward pass at its temperature', async () => {
    const judged = await judge(directory, server.model, { true: talk.rows, kind: miscalled(talk.rows) })
    console.log(judged)
    expect(judged['true']?.p99).toBeLessThanOrEqual(1e-3)
    expect(judged['kind']?.p99).toBeGreaterThan(1e-3)
  })
})
