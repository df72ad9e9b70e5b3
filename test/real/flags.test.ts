/** What `paddock doctor` says of a real vLLM that was started with wrong flags, and that engines.md has the same words. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { paddock } from '../cli/paddock.ts'
import { cache, startVllm } from './vllm.ts'

interface Finding {
  readonly status: string
  readonly what: string
  readonly fix?: string
}

const combinations = [
  {
    name: 'no token routes, no tool parser, no alternatives',
    flags: ['--no-enable-scale-out', '--max-logprobs', '0'],
    lacks: [
      'token routes (render, generate and derender do not answer)',
      'kind of logprobs (a second candidate may not be asked for)',
      'tool calls (',
    ],
  },
] as const

describe.skipIf(cache === '').each(combinations)('vLLM 0.32.0 started with $name', ({ flags, lacks }) => {
  let directory: string
  let findings: readonly Finding[]
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paddock-real-'))
    await using server = await startVllm('qwen3-tiny', flags)
    const env = { ENGINE_URL: server.url }
    const { out } = await paddock(['doctor', '--no-docker', '--json', '--data', join(directory, 'data')], env)
    findings = (JSON.parse(out) as { findings: readonly Finding[] }).findings
  })
  afterAll(() => rm(directory, { recursive: true, force: true }))

  it('doctor says each, with a fix, and nothing else of the engine', async () => {
    const said = findings.filter(({ status, what }) => status !== 'ok' && /token|tool|logprob|cut|cache/.test(what))
    expect(said.map(({ what }) => lacks.find((lack) => what.startsWith(lack)) ?? what).toSorted()).toEqual(
      lacks.toSorted(),
    )
    const page = await readFile(join(import.meta.dirname, '../../docs/reference/engines.md'), 'utf8')
    for (const { fix } of said) expect(page).toContain(fix)
  })
})
