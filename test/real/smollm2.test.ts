/** SmolLM2-135M on a real vLLM: the engine suite, the four dialects, doctor, and rows before an independent judge. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PromptIds } from '../../src/proxy/engines/prompt-ids.ts'
import { vllmEngine } from '../../src/proxy/index.ts'
import { engineContract } from '../../src/testing/engine/index.ts'
import { dialects, official } from '../lab/official.ts'
import { paddock, serve } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { exportRows, judge, miscalled, miscontexted, type Row, shifted } from './rows.ts'
import { cache, type RealServer, startVllm } from './vllm.ts'

describe.skipIf(cache === '')('vLLM 0.32.0 with SmolLM2', () => {
  let server: RealServer
  let directory: string
  beforeAll(async () => {
    directory = tempDir()
    server = await startVllm('smollm2', ['--enable-auto-tool-choice', '--tool-call-parser', 'hermes'])
  })
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]()
  })

  it('doctor says what it gives', async () => {
    const { out } = await paddock(['doctor', '--no-docker', '--data', join(directory, 'doctor')], {
      ENGINE_URL: server.url,
    })
    expect(out).toContain(`vllm 0.32.0 at ${server.url}, model smollm2`)
    expect(out).toContain('gives token ids, logprobs, tool calls')
    expect(out).toContain('logprob kind: raw')
    expect(out).toContain('strategy auto: splice, by render, generate and derender')
  })

  describe('rows', () => {
    let rows: readonly Row[]
    beforeAll(async () => {
      const data = join(directory, 'rows')
      const serving = await serve(data, ['--engine', server.url])
      const { OPENAI_BASE_URL: base, OPENAI_API_KEY: key } = serving.ready.env
      const at = { root: base.replace(/\/v1$/, ''), key, model: server.model, maxTokens: 12 }
      for (const [place, dialect] of dialects.entries()) {
        for (const stream of [false, true]) {
          const question = `Tell me about the ${dialect} of ${stream ? 'rivers' : 'hills'}.`
          const { text } = await official[dialect]({ ...at, temperature: [0.2, 1][place % 2] ?? 1 }, question, stream)
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

    it('agree with an independent forward pass, and three kinds of damage do not', async () => {
      const sets = { true: rows, shifted: shifted(rows), context: miscontexted(rows), kind: miscalled(rows) }
      const judged = await judge(directory, server.model, sets)
      console.log(judged)
      expect(judged['true']?.tokens).toBe(rows.flatMap(({ loss_mask: mask }) => mask).filter((bit) => bit === 1).length)
      expect(judged['true']?.p99).toBeLessThanOrEqual(1e-3)
      expect(judged['shifted']?.p99).toBeGreaterThan(1e-3)
      expect(judged['context']?.p99).toBeGreaterThan(1e-3)
      expect(judged['kind']?.p99).toBeGreaterThan(1e-3)
    })

    it('are what the engine says of the same ids, asked again', async () => {
      const adapter = vllmEngine({ url: server.url })
      await adapter.learn({ probes: false })
      let largest = 0
      for (const { token_ids: ids, loss_mask: mask, logprobs } of rows) {
        const scored = await adapter.score?.(new PromptIds(Int32Array.from(ids)), null)
        expect(scored?.logprobs).toHaveLength(ids.length)
        for (const [at, bit] of mask.entries()) {
          const [told, again] = [logprobs[at] ?? Number.NaN, scored?.logprobs[at] ?? Number.NaN]
          if (bit === 1) largest = Math.max(largest, Math.abs(told - again))
        }
      }
      console.log({ largest })
      expect(largest).toBeLessThanOrEqual(1e-3)
    })
  })

  engineContract('vLLM 0.32.0, SmolLM2', {
    start: async () => ({
      adapter: vllmEngine({ url: server.url }),
      model: server.model,
      [Symbol.asyncDispose]: async () => {},
    }),
    givesIds: true,
    splices: true,
    alive: true,
  })
})
