/** SmolLM2-135M on a real llama.cpp: the engine suite, the four dialects, doctor, a tool call, and rows before a judge. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Llamacpp, startLlamacpp } from '../../scripts/llamacpp.ts'
import { llamacppEngine } from '../../src/proxy/index.ts'
import { engineContract } from '../../src/testing/engine/index.ts'
import { paddock, serve } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { dialects, official } from '../lab/official.ts'
import { exportRows, judge, type Row, shifted } from './rows.ts'
import { cache } from './vllm.ts'

const model = 'smollm2'

describe.skipIf(cache === '')('llama.cpp 11549 with SmolLM2', () => {
  let server: Llamacpp
  let directory: string
  beforeAll(async () => {
    directory = tempDir()
    const up = fileURLToPath(new URL('../../scripts/llamacpp-up', import.meta.url))
    server = await startLlamacpp(execFileSync('sh', [up], { encoding: 'utf8' }).trim())
  })
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]()
  })

  it('doctor says what it gives', async () => {
    const { out } = await paddock(['doctor', '--no-docker', '--data', join(directory, 'doctor')], {
      ENGINE_URL: server.url,
    })
    expect(out).toContain(`at ${server.url}, model ${model}`)
    expect(out).toContain('gives token ids, logprobs')
    expect(out).toContain('tool calls (the template of its model takes no tools)')
    expect(out).toContain('logprob kind: raw')
    expect(out).toContain('strategy auto: splice, by tokenize, generate and parsers of text')
  })

  it('plays act 1 of the quickstart', () => {
    const program = fileURLToPath(new URL('../../quickstart', import.meta.url))
    const places = ['--data', join(directory, 'act1'), '--out', join(directory, 'act1-out')]
    const env = { ...process.env, ENGINE_URL: '' }
    const shown = execFileSync(program, ['--model', 'small', '--yes', ...places], { encoding: 'utf8', env })
    expect(shown).toMatch(/call 0 · main · .* · splice/)
    expect(shown).toMatch(/sampled +\d+ = \d+ trainable/)
  })

  describe('rows', () => {
    let rows: readonly Row[]
    beforeAll(async () => {
      const data = join(directory, 'rows')
      const serving = await serve(data, ['--engine', server.url])
      const { OPENAI_BASE_URL: base, OPENAI_API_KEY: key } = serving.ready.env
      const at = { root: base.replace(/\/v1$/, ''), key, model, maxTokens: 12 }
      for (const dialect of dialects) {
        for (const stream of [false, true]) {
          const question = `Tell me about the ${dialect} of ${stream ? 'rivers' : 'hills'}.`
          const { text } = await official[dialect]({ ...at, temperature: 1 }, question, stream)
          expect(text).not.toBe('')
        }
      }
      expect((await serving.stop()).code).toBe(0)
      rows = await exportRows(data, join(directory, 'out'))
    })

    it('hold what each of the four dialects sampled, streamed and not', () => {
      expect(rows).toHaveLength(8)
      expect(rows.every(({ logprob_kind: kind }) => kind === 'raw')).toBe(true)
      expect(rows.every(({ loss_mask: mask }) => mask.includes(1))).toBe(true)
    })

    it('are near an independent forward pass over the dequantised weights, and shifted ones are not', async () => {
      const judged = await judge(directory, model, { true: rows, shifted: shifted(rows) })
      console.log(judged)
      // Q4_1 weights, and activations that llama.cpp quantises to 8 bits: reported, not equal.
      expect(judged['true']?.mean).toBeLessThan(0.1)
      expect(judged['shifted']?.mean).toBeGreaterThan(1)
    })
  })

  engineContract('llama.cpp 11549, SmolLM2', {
    start: async () => ({
      adapter: llamacppEngine({ url: server.url }),
      model,
      [Symbol.asyncDispose]: async () => {},
    }),
    givesIds: true,
    splices: true,
    alive: true,
    takesTools: false,
    severalChoices: false,
    cutsAtContext: true,
    missesLogprobs: true,
  })
})
