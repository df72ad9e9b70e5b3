/** What `paddock doctor` says of a real vLLM that was started with wrong flags, that engines.md has the same words, and what a proxy learns. */
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../scripts/free-port.ts'
import { startVllm as startAny } from '../../scripts/learn.ts'
import type { EngineFingerprint } from '../../src/core/index.ts'
import { vllmEngine } from '../../src/proxy/index.ts'
import { fingerprintDigest, type SessionLog } from '../../src/trajectory/index.ts'
import { paddock } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { startProxy, type TestSession } from '../proxy/support.ts'
import { cache, startVllm, weights } from './vllm.ts'

interface Finding {
  readonly status: string
  readonly what: string
  readonly fix?: string
}

const model = 'qwen3-tiny'

const page = (): Promise<string> => readFile(join(import.meta.dirname, '../../docs/reference/engines.md'), 'utf8')

const directory = tempDir()

/** What doctor finds wrong with the engine; each fix stands on the page. */
async function lacksOf(url: string): Promise<readonly string[]> {
  const args = ['doctor', '--no-docker', '--json', '--data', join(directory, 'data')]
  const { out } = await paddock(args, { ENGINE_URL: url })
  const { findings } = JSON.parse(out) as { readonly findings: readonly Finding[] }
  const said = findings.filter(({ status, what }) => status !== 'ok' && /token|tool|logprob|cut|cache/.test(what))
  const words = await page()
  for (const { fix } of said) expect(words).toContain(fix)
  // What the server itself said of its tools is its own.
  return said.map(({ what }) => (what.startsWith('tool calls (') ? 'tool calls' : what)).toSorted(inOrder)
}

const inOrder = (one: string, other: string): number => (one < other ? -1 : 1)

describe.skipIf(cache === '')('vLLM 0.32.0 started with wrong flags, and again at its address with others', () => {
  const lacks: (readonly string[])[] = []
  const cached: number[] = []
  const fingerprints = new Map<string, EngineFingerprint>()
  const logs: SessionLog[] = []
  let changes: readonly string[]
  beforeAll(async () => {
    const port = await freePort()
    const few = ['--no-enable-scale-out', '--max-logprobs', '0', '--enable-prompt-tokens-details']
    const first = await startVllm(model, few, { port })
    const { url } = first
    await using proxy = await startProxy(url, {
      engine: vllmEngine({ url }),
      putFingerprint: async (fingerprint) => {
        const digest = fingerprintDigest(fingerprint)
        fingerprints.set(digest, fingerprint)
        return digest
      },
    })
    const say = async (session: TestSession): Promise<void> => {
      const messages = [{ role: 'user', content: 'Tea?' }]
      const answer = await session.post({ model, messages, max_tokens: 4, temperature: 0.7 })
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('choices')])
    }
    const auto = { policy: { strategy: 'auto' as const } }
    const session = await proxy.open(auto)
    await say(session)
    lacks.push(await lacksOf(url))
    for (const salt of ['one', 'one', 'other']) cached.push(await cachedOf(url, salt))
    await first[Symbol.asyncDispose]()

    const directoryOf = join(directory, 'cuts')
    await cp(weights(model), directoryOf, { recursive: true })
    const own = { temperature: 0.7, top_p: 0.8, top_k: 20 }
    await writeFile(join(directoryOf, 'generation_config.json'), JSON.stringify(own))
    const cuts = ['--generation-config', 'auto', '--no-enable-prefix-caching', '--logprobs-mode', 'processed_logprobs']
    await using _second = await startAny({ cache, directory: directoryOf, model, flags: cuts, port })
    lacks.push(await lacksOf(url))
    await say(session)
    const later = await proxy.open(auto)
    await say(later)
    await proxy.proxy.drain()
    logs.push(await session.log(), await later.log())
    changes = proxy.events.flatMap((event) =>
      event.type === 'engine' && event.what === 'changed' ? [event.detail] : [],
    )
  })

  it('doctor says what it lacks, each with a fix, and nothing else of the engine', () => {
    expect(lacks).toEqual([
      [
        'kind of logprobs (a second candidate may not be asked for)',
        'token routes (render, generate and derender do not answer)',
        'tool calls',
      ],
      ['its own defaults cut the distribution (top_p 0.8, top_k 20)', 'prefix cache (switched off)', 'tool calls'],
    ])
  })

  it('a salt keeps its prefix cache from others', () => {
    const [before, again, other] = cached
    expect([before, other]).toEqual([0, 0])
    expect(again).toBeGreaterThan(0)
  })

  it('what it became is an event, and calls carry what it was and what it is', () => {
    expect(changes.join(', ')).toContain('logprobKind raw -> processed')
    expect(changes.join(', ')).toContain('topP 1 -> 0.8')
    expect(changes).toContain('token routes none -> derender')
    const calls = logs.flatMap((log) => log.calls)
    expect(calls.map(({ intent }) => fingerprints.get(intent.fingerprint ?? '')?.logprobKind)).toEqual([
      'raw',
      'processed',
      'processed',
    ])
    expect(calls.map(({ intent }) => intent.used.topP)).toEqual([1, 0.8, 0.8])
    expect(calls.map(({ intent }) => intent.strategy)).toEqual(['record', 'record', 'splice'])
    expect(calls.map(({ commit }) => commit?.findings)).toEqual([[], [], []])
    const kinds = logs.flatMap(({ segments }) =>
      segments.filter(({ origin }) => origin === 'sampled').map((segment) => segment.logprobKind),
    )
    expect(kinds).toEqual(['raw', 'processed', 'processed'])
  })
})

/** How many ids of a long prompt were in the server's cache. */
async function cachedOf(url: string, salt: string): Promise<number> {
  const messages = [{ role: 'user', content: 'Tea, and more tea. '.repeat(60) }]
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, max_tokens: 1, cache_salt: salt }),
  })
  const { usage } = (await reply.json()) as {
    readonly usage: { readonly prompt_tokens_details: { readonly cached_tokens: number } }
  }
  return usage.prompt_tokens_details.cached_tokens
}
