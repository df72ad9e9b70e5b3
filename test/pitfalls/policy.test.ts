import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sha256 } from '../../src/core/index.ts'
import { keyHeader, type Lab, openLab } from '../lab/lab.ts'
import { dialects, official } from '../lab/official.ts'
import type { Json } from '../lab/speaker.ts'

/** Whose parameters, weights, sockets and keys: what happens between the harness's wish and the engine. */
const long = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ')

let lab: Lab
beforeAll(async () => {
  lab = await openLab()
  await lab.script('Talk long.', [{ say: long }])
  await lab.script('Act.', [{ shell: 'ls' }, { say: 'Done.' }])
})
afterAll(() => lab[Symbol.asyncDispose]())

const ask = (content: string) => ({ model: lab.model, messages: [{ role: 'user', content }] })

it('pitfall 17: a harness that sets temperature, top-p or penalties is pinned, and both wishes are stored', async () => {
  const rollout = await lab.rollout({ pin: { temperature: 1, topP: 1, presencePenalty: 0 }, clamp: { maxTokens: 50 } })
  const body = { ...ask('Act.'), temperature: 0.2, top_p: 0.5, presence_penalty: 1.5, max_tokens: 32_000 }
  await rollout.post('/v1/chat/completions', body, keyHeader('chat', rollout.key))
  const [call] = (await rollout.log()).calls
  expect(call?.intent.asked).toMatchObject({ temperature: 0.2, topP: 0.5, presencePenalty: 1.5, maxTokens: 32_000 })
  expect(call?.intent.used).toMatchObject({ temperature: 1, topP: 1, presencePenalty: 0, maxTokens: 50 })
  const journal = (await readFile(lab.engine.journal, 'utf8')).trim().split('\n')
  const lines: Json[] = journal.map((line) => JSON.parse(line) as Json)
  const own = lines.find((line) => line.kind === 'generation' && line.headers['x-session-id'] === rollout.sessionId)
  // What the engine says it used, in its own words.
  expect(own.sampling).toMatchObject({ temperature: 1, topP: 1 })
})

describe('pitfall 18: limits that nobody set, and windows that are full', () => {
  it('an answer without a limit is not cut at the engine’s own small default', async () => {
    for (const strategy of ['record', 'splice'] as const) {
      const rollout = await lab.rollout({ strategy })
      const reply = await rollout.post('/v1/chat/completions', ask('Talk long.'), keyHeader('chat', rollout.key))
      const [choice] = (JSON.parse(reply.text) as Json).choices
      expect([choice.finish_reason, choice.message.content]).toEqual(['stop', long])
    }
  })

  let small: Lab
  beforeAll(async () => {
    small = await openLab({ flags: ['--max-model-len', '512'] })
  })
  afterAll(() => small[Symbol.asyncDispose]())

  it.each(dialects)('a prompt that does not fit is an overflow as this client knows it (%s)', async (dialect) => {
    const told = {
      chat: /context length|context_length_exceeded/,
      responses: /context length|context_length_exceeded/,
      messages: /prompt is too long/,
      gemini: /exceeds the maximum number of tokens/,
    } as const
    for (const strategy of ['record', 'splice'] as const) {
      const rollout = await small.rollout({ strategy })
      const pointed = { root: rollout.root, key: rollout.key, model: small.model }
      await expect(official[dialect](pointed, 'word and word '.repeat(400), false)).rejects.toThrow(told[dialect])
      const { calls, segments } = await rollout.log()
      expect([calls[0]?.commit?.outcome.kind, segments.filter((one) => one.origin === 'sampled')]).toEqual([
        'engine_error',
        [],
      ])
      // The harness filled its window; that is no fault of ours.
      expect(small.proxy.sessionStats(rollout.sessionId).taints).toEqual([])
    }
  })
})

describe('pitfall 19: weights that change between admission and the last token', () => {
  it('an update in the middle of an answer is in the spans, token by token where the engine says so', async () => {
    const rollout = await lab.rollout({ strategy: 'splice' })
    await lab.fault({ kind: 'weight_update', token: 4, version: 'w-2', match: { session: rollout.sessionId } })
    await rollout.post('/v1/chat/completions', ask('Talk long.'), keyHeader('chat', rollout.key))
    const { log, report, manifest } = await rollout.judge()
    const sampled = log.segments.find((segment) => segment.origin === 'sampled')
    const spans = sampled?.policySpans ?? []
    expect(spans.map(({ policy, mixing }) => [policy.weightVersion, mixing])).toEqual([
      ['0', 'none'],
      ['w-2', 'kv_mixed'],
    ])
    expect([spans[0]?.start, spans[0]?.end, spans[1]?.end]).toEqual([0, spans[1]?.start, sampled?.tokens.length])
    expect(report.deviations).toEqual([])
    expect(manifest.policies.map((policy) => policy.weight_version)).toEqual(['0', 'w-2'])
  })

  it('where the engine gives no spans, the versions before and after are told apart as mixed', async () => {
    await using plain = await openLab({ flags: ['--no-weight-versions-in-replies'] })
    await plain.script('Talk long.', [{ say: long }])
    const rollout = await plain.rollout({ strategy: 'splice' })
    await plain.fault({ kind: 'weight_update', token: 4, version: 'w-2', match: { session: rollout.sessionId } })
    await rollout.post('/v1/chat/completions', ask('Talk long.'), keyHeader('chat', rollout.key))
    const { log } = await rollout.judge()
    const spans = log.segments.find((segment) => segment.origin === 'sampled')?.policySpans ?? []
    // Nobody may believe that one version made all of these tokens.
    expect(spans.every((span) => span.policy.weightVersion !== '0' || span.mixing !== 'none')).toBe(true)
  })
})

describe('pitfall 27: the session’s name is no key, and a key is nowhere in clear', () => {
  it('the id in the URL opens nothing', async () => {
    const rollout = await lab.rollout()
    for (const headers of [{}, { authorization: `Bearer ${rollout.sessionId}` }, { 'x-api-key': rollout.sessionId }]) {
      expect((await rollout.post('/v1/chat/completions', ask('Act.'), headers)).status).toBe(401)
    }
    expect((await rollout.log()).calls).toEqual([])
  })

  it('only its digest is stored', async () => {
    const rollout = await lab.rollout()
    await rollout.post('/v1/chat/completions', ask('Act.'), keyHeader('chat', rollout.key))
    const log = await rollout.log()
    expect(log.session.keyDigest).toBe(sha256(rollout.key))
    for (const name of await readdir(lab.storeDirectory)) {
      const bytes = await readFile(join(lab.storeDirectory, name)).catch(() => Buffer.alloc(0))
      expect([name, bytes.includes(rollout.key)]).toEqual([name, false])
    }
  })
})
