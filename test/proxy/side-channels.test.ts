import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId, sha256 } from '../../src/core/index.ts'
import { openaiEngine, sglangEngine, vllmEngine } from '../../src/proxy/index.ts'
import { runExport, type Store } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { useStore } from '../fixtures/use-store.ts'
import { startProxy, type TestEngine, type TestProxy } from './support.ts'

/** Experts of a token by the rule that the scripted engine follows instead of a router: layers of two. */
const expertsOf = (ids: readonly number[]): number[] =>
  ids.slice(0, -1).flatMap((id) => [0, 1, 2, 3].map((at) => (id + 3 * at) % 8))

const apis = [
  ['vllm', (url: string) => vllmEngine({ url })],
  ['sglang', (url: string) => sglangEngine({ url, streamsIds: true, routedExperts: true })],
] as const

const asked = {
  chat: (stream: boolean) => [
    '/v1/chat/completions',
    { model: 'scripted-hermes', messages: [{ role: 'user', content: 'Hi.' }], stream },
  ],
  responses: (stream: boolean) => ['/v1/responses', { model: 'scripted-hermes', input: 'Hi.', stream }],
  messages: (stream: boolean) => [
    '/v1/messages',
    { model: 'scripted-hermes', max_tokens: 64, messages: [{ role: 'user', content: 'Hi.' }], stream },
  ],
  gemini: (stream: boolean) => [
    `/v1beta/models/scripted-hermes:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text: 'Hi.' }] }] },
  ],
} as const satisfies Record<string, (stream: boolean) => readonly [string, object]>

describe.each(apis)('side channels, %s', (wire, adapter) => {
  let directory: string
  let engine: TestEngine
  let store: Store
  let paddock: TestProxy
  beforeAll(async () => {
    directory = tempDir()
    engine = await useEngine('--wire', wire, '--routed-experts')
    store = await useStore()
    paddock = await startProxy(engine.url, {
      engine: adapter(engine.url),
      recorder: store.recorder,
      blobs: store.blobs,
    })
  })
  afterAll(async () => {
    await paddock[Symbol.asyncDispose]()
  })

  it.each([
    ['record', false],
    ['record', true],
    ['splice', false],
    ['splice', true],
  ] as const)('pitfall 21: experts and alternatives are kept by digest: %s, streamed: %s', async (strategy, stream) => {
    const session = await paddock.open({ policy: { strategy } })
    const body = { model: 'scripted-hermes', messages: [{ role: 'user', content: 'Say hello.' }], stream }
    const text = await (await session.post({ ...body, logprobs: true, top_logprobs: 2 })).text()
    expect(text).not.toMatch(/routed_experts":"|weight_versions":\[/)
    const log = await session.log()
    const callId = log.calls[0]?.intent.id
    const truth = await engine.generation(callId)
    const kept = log.events.filter((event) => event.kind === 'side_channel')
    // vLLM's chat streams have no routed experts.
    const bare = wire === 'vllm' && strategy === 'record' && stream
    expect(kept.map(({ what }) => what)).toEqual(
      bare ? ['top_logprobs', 'entropies'] : ['top_logprobs', 'entropies', 'routed_experts'],
    )
    expect(kept.every((event) => event.callId === callId && event.choice === 0)).toBe(true)
    const [alternatives, , experts] = await Promise.all(kept.map((event) => store.blobs.get(event.sha256)))
    const lists = JSON.parse(zstdDecompressSync(alternatives ?? new Uint8Array()).toString()) as { logprob: number }[][]
    expect(lists).toHaveLength(truth.choices[0]?.tokenIds.length ?? 0)
    expect(lists.every((list) => list.length > 0 && list.every(({ logprob }) => logprob <= 0))).toBe(true)
    if (experts === undefined) return
    const ids = [...truth.promptTokenIds, ...(truth.choices[0]?.tokenIds ?? [])]
    const told = wire === 'vllm' ? npy(experts) : [...new Int32Array(Uint8Array.from(experts).buffer)]
    expect(told).toEqual(expertsOf(ids))
  })

  it.each(['chat', 'responses', 'messages', 'gemini'] as const)(
    'asks for alternatives itself, in %s, and tells the harness nothing of them',
    async (dialect) => {
      for (const stream of [false, true]) {
        for (const strategy of ['record', 'splice'] as const) {
          const session = await paddock.open({ policy: { strategy, topLogprobs: 3 } })
          const [path, body] = asked[dialect](stream)
          const answer = await fetch(`${session.url.replace(/\/v1$/, '')}${path}`, {
            method: 'POST',
            headers: {
              authorization: `Bearer ${session.key}`,
              'x-api-key': session.key,
              'x-goog-api-key': session.key,
              'content-type': 'application/json',
            },
            body: JSON.stringify(body),
          })
          const text = await answer.text()
          expect([answer.status, text.length > 0]).toEqual([200, true])
          expect(text).not.toMatch(/logprob":-|"top_logprobs":\[\{|entrop/i)
          const log = await session.log()
          const [call] = log.calls
          const truth = await engine.generation(call?.intent.id)
          const of = log.events.filter((event) => event.kind === 'side_channel' && event.what !== 'routed_experts')
          expect(of).toMatchObject([{ what: 'top_logprobs' }, { what: 'entropies' }])
          const [alternatives, entropies] = await Promise.all(
            of.map((event) => store.blobs.get(event.kind === 'side_channel' ? event.sha256 : '')),
          )
          const lists = JSON.parse(zstdDecompressSync(alternatives ?? new Uint8Array()).toString()) as {
            logprob: number
          }[][]
          const count = truth.choices[0]?.tokenIds.length ?? 0
          expect(lists.map(({ length }) => length > 0)).toEqual(Array.from({ length: count }, () => true))
          const told = new Float32Array(Uint8Array.from(entropies ?? []).buffer)
          // By another sum than the one that made them: what is left out is one token more.
          const expected = lists.map((list) => {
            const all = list.map(({ logprob }) => Math.exp(logprob))
            const rest = Math.max(0, 1 - all.reduce((sum, one) => sum + one, 0))
            return [...all, rest].reduce((sum, one) => sum - (one > 0 ? one * Math.log(one) : 0), 0)
          })
          expect(told).toHaveLength(count)
          for (const [at, one] of expected.entries()) expect(told[at]).toBeCloseTo(one, 4)
          // Ids and logprobs are what they are without.
          expect(call?.commit?.findings).toEqual([])
        }
      }
    },
  )

  it('leaves a harness that asks for logprobs its own number', async () => {
    const session = await paddock.open({ policy: { strategy: 'record', topLogprobs: 5 } })
    const body = { model: 'scripted-hermes', messages: [{ role: 'user', content: 'Say hello.' }] }
    const answer = JSON.parse(await (await session.post({ ...body, logprobs: true, top_logprobs: 1 })).text()) as {
      choices: { logprobs: { content: { top_logprobs: unknown[] }[] } }[]
    }
    const shown = answer.choices[0]?.logprobs.content.map(({ top_logprobs: top }) => top.length) ?? []
    expect(Math.max(...shown)).toBeLessThanOrEqual(2)
  })

  it('are files of an export that was asked for them, and of no other', async () => {
    const { catalogue, blobs } = store
    const task = {
      digest: sha256(wire),
      name: 't',
      environment: 'none',
      instruction: 'i',
      split: 'train',
      data: {},
      source: 's',
    }
    const run = { id: newId(), name: 'r', createdAt: 1, config: {} }
    const group = { id: newId(), runId: run.id, taskDigest: task.digest, promptVariant: 'default', createdAt: 1 }
    const id = newId()
    await catalogue.putTask(task)
    await catalogue.putRun(run)
    await catalogue.putGroup(group)
    await catalogue.putRollout({
      id,
      runId: run.id,
      groupId: group.id,
      slot: 0,
      attempt: 0,
      harness: 'script',
      createdAt: 1,
    })
    const session = await paddock.open({ rolloutId: id, policy: { strategy: 'splice', topLogprobs: 2 } })
    const messages = [{ role: 'user', content: 'Say hello.' }]
    expect((await session.post({ model: 'scripted-hermes', messages })).status).toBe(200)
    const exported = async (name: string, more: object) => {
      const out = join(directory, name)
      const request = { reader: store, exporter: 'jsonl', out, paddockVersion: '0.0.0', query: { rolloutIds: [id] } }
      await runExport({ ...request, ...more })
      return JSON.parse((await readFile(join(out, 'rows.jsonl'), 'utf8')).trim()) as {
        side_channels?: { what: string; path: string; sha256: string; size_bytes: number }[]
        entropies?: (number | null)[]
        loss_mask: number[]
      }
    }
    const without = await exported('without', {})
    expect([without.side_channels, without.entropies]).toEqual([undefined, undefined])
    const row = await exported('with', { sideChannels: blobs })
    // A number for each sampled token and for no other.
    expect(row.entropies?.map((entropy) => (entropy === null ? 0 : 1))).toEqual(row.loss_mask)
    expect(row.entropies?.every((entropy) => entropy === null || entropy >= 0)).toBe(true)
    const one = row.side_channels?.find(({ what }) => what === 'routed_experts')
    expect(one).toMatchObject({ what: 'routed_experts', path: `side_channels/${one?.sha256}` })
    const file = await readFile(join(directory, 'with', one?.path ?? ''))
    expect(file).toEqual(Buffer.from(await blobs.get(one?.sha256 ?? '')))
    expect(file).toHaveLength(one?.size_bytes ?? 0)
  })
})

it('alternatives are refused by name where an engine gives no logprobs', async () => {
  await using paddock = await startProxy('http://127.0.0.1:9', {
    engine: openaiEngine({ url: 'http://127.0.0.1:9', logprobs: false }),
  })
  await expect(paddock.open({ policy: { topLogprobs: 3 } })).rejects.toMatchObject({ code: 'ENGINE_INCAPABLE' })
  await expect(paddock.open({})).resolves.toBeDefined()
})

/** Numbers of a NumPy file of unsigned bytes: header length stands at byte 8. */
function npy(bytes: Uint8Array): number[] {
  const header = 10 + (bytes[8] ?? 0) + 256 * (bytes[9] ?? 0)
  expect(Buffer.from(bytes.subarray(10, header)).toString()).toMatch(/'shape': \(\d+, 2, 2\)/)
  return [...bytes.subarray(header)]
}
