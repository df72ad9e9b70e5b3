/** The Llama 3 family on a real vLLM: random weights behind its tokenizer and template, `raw` logprobs. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { vllmEngine } from '../../src/proxy/index.ts'
import { engineContract } from '../../src/testing/engine/index.ts'
import { paddock } from '../cli/paddock.ts'
import { converse } from './converse.ts'
import { judge, miscalled, type Row } from './rows.ts'
import { cache, type RealServer, startVllm } from './vllm.ts'

describe.skipIf(cache === '')('vLLM 0.32.0 with a random Llama 3', () => {
  let server: RealServer
  let directory: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paddock-real-'))
    const parsers = ['--enable-auto-tool-choice', '--tool-call-parser', 'llama3_json']
    server = await startVllm('llama3-tiny', parsers)
  })
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true })
  })

  it('doctor tells the kind of logprobs that vLLM gives by itself', async () => {
    const { out } = await paddock(['doctor', '--no-docker', '--data', join(directory, 'doctor')], {
      ENGINE_URL: server.url,
    })
    expect(out).toContain('logprob kind: raw')
  })

  describe('an append-only conversation', () => {
    let rows: readonly Row[]
    beforeAll(async () => {
      rows = await converse(server, directory, { turns: 4, temperature: 0.5 })
    })

    it('is one row, whatever ids were sampled', () => {
      expect(rows).toHaveLength(1)
      expect(rows[0]?.segments.filter(({ origin }) => origin === 'sampled')).toHaveLength(4)
    })

    it('agrees with an independent forward pass, whatever the temperature', async () => {
      const judged = await judge(directory, server.model, { true: rows, kind: miscalled(rows) })
      console.log(judged)
      expect(judged['true']?.p99).toBeLessThanOrEqual(1e-3)
      expect(judged['kind']?.p99).toBeGreaterThan(1e-3)
    })
  })

  engineContract('vLLM 0.32.0, random Llama 3', {
    start: async () => ({
      adapter: vllmEngine({ url: server.url }),
      model: server.model,
      [Symbol.asyncDispose]: async () => {},
    }),
    givesIds: true,
    splices: true,
    alive: true,
    calls: false,
  })
})
