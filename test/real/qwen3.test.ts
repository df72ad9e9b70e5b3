/** The Qwen3 family on a real vLLM: random weights behind its tokenizer and template, `processed` logprobs. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { paddock } from '../cli/paddock.ts'
import { converse } from './converse.ts'
import { judge, miscalled, type Row } from './rows.ts'
import { cache, type RealServer, startVllm } from './vllm.ts'

describe.skipIf(cache === '')('vLLM 0.32.0 with a random Qwen3', () => {
  let server: RealServer
  let directory: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paddock-real-'))
    // Without the reasoning parser: random weights never end their thinking.
    const parsers = ['--enable-auto-tool-choice', '--tool-call-parser', 'hermes']
    server = await startVllm('qwen3-tiny', [...parsers, '--logprobs-mode', 'processed_logprobs'])
  })
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true })
  })

  it('doctor tells the kind of logprobs that the flag chose', async () => {
    const { out } = await paddock(['doctor', '--no-docker', '--data', join(directory, 'doctor')], {
      ENGINE_URL: server.url,
    })
    expect(out).toContain('logprob kind: processed')
  })

  describe('a conversation', () => {
    let rows: readonly Row[]
    beforeAll(async () => {
      rows = await converse(server, directory, { turns: 4, temperature: 0.5 })
    })

    it('agrees with an independent forward pass at its temperature', async () => {
      expect(rows.flatMap(({ loss_mask: mask }) => mask).filter((bit) => bit === 1)).toHaveLength(4 * 24)
      const judged = await judge(directory, server.model, { true: rows, kind: miscalled(rows) })
      console.log(judged)
      expect(judged['true']?.p99).toBeLessThanOrEqual(1e-3)
      expect(judged['kind']?.p99).toBeGreaterThan(1e-3)
    })
  })
})
