/** Texts that the policy sees and the harness does not: in the prompts, never in the requests, and out of the clean view. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chatRequestOf, type SessionPast } from '../../src/proxy/index.ts'
import {
  buildRows,
  type Injection,
  type RowView,
  type SessionLog,
  type SessionPolicy,
} from '../../src/trajectory/index.ts'
import { checkSession } from '../../src/trajectory/fsck/session-checks.ts'
import { chat, type Harness, harnesses, sameTools, tidyScript } from './harnesses.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { useStore } from '../fixtures/use-store.ts'
import { startProxy, type TestEngine, type TestProxy } from './support.ts'

let engine: TestEngine
let paddock: TestProxy
beforeAll(async () => {
  engine = await useEngine()
  await engine.control('/scripts', tidyScript)
  paddock = await startProxy(engine.url)
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

const atSystem: Injection = { at: 'system', text: 'Be brief, says heron.', label: 'rule', keep: 'always' }
const atTask: Injection = { at: 'task', text: 'The files end in tmp, says heron.', label: 'hint', keep: 'always' }
const atTurn: Injection = { at: { turn: 2 }, text: 'Half is done, says heron.', label: 'nudge', keep: 'always' }
const all = [atSystem, atTask, atTurn]

interface Asked {
  readonly harness?: Harness
  readonly stream?: boolean
  readonly model?: string
  readonly policy?: Partial<SessionPolicy>
  readonly past?: SessionPast
  readonly on?: TestProxy
}

async function done({
  harness = chat,
  stream = false,
  model,
  policy = {},
  past,
  on = paddock,
}: Asked): Promise<SessionLog> {
  const session = await on.open({
    policy: { strategy: 'record', ...policy },
    ...(past === undefined ? {} : { past }),
  })
  await harness(session, { stream, tools: sameTools, ...(model === undefined ? {} : { model }) })
  await on.proxy.closeSession(session.id)
  return session.log()
}

const rowsOf = (log: SessionLog, view: RowView) =>
  buildRows(log, { rolloutId: 'r', groupId: 'g', taskDigest: 't', view }).rows
const idsOf = (log: SessionLog, view: RowView) => rowsOf(log, view).map(({ tokens }) => [...tokens])
const promptOf = async (log: SessionLog, at: number) =>
  (await engine.generation(log.calls[at]?.intent.id)).promptTokenIds
const forksOf = (log: SessionLog) => log.calls.flatMap(({ commit }) => commit?.forks ?? [])
const sampled = (log: SessionLog) =>
  log.segments.reduce((sum, { origin, tokens }) => sum + (origin === 'sampled' ? tokens.length : 0), 0)
const trained = (log: SessionLog, view: RowView) =>
  rowsOf(log, view).reduce((sum, { mask }) => sum + mask.reduce((all, bit) => all + bit, 0), 0)

async function textOf(model: string, tokens: readonly number[]): Promise<string> {
  const answer = await fetch(`${engine.url}/detokenize`, { method: 'POST', body: JSON.stringify({ model, tokens }) })
  return ((await answer.json()) as { prompt: string }).prompt
}

describe.each(Object.entries(harnesses))('%s', (_, harness) => {
  it.each([
    { stream: false, strategy: 'record' as const },
    { stream: true, strategy: 'record' as const },
    { stream: false, strategy: 'splice' as const },
    { stream: true, strategy: 'splice' as const },
  ])('the policy sees what the harness does not write ($strategy, stream $stream)', async ({ stream, strategy }) => {
    const plain = await done({ harness, stream, policy: { strategy } })
    const log = await done({ harness, stream, policy: { strategy, inject: all } })
    for (const { intent } of log.calls) expect(Buffer.from(intent.body).toString()).not.toContain('heron')
    expect(log.calls).toHaveLength(plain.calls.length)
    const prompts = await Promise.all(
      log.calls.map(async (_call, at) => textOf('scripted-hermes', await promptOf(log, at))),
    )
    for (const [at, prompt] of prompts.entries()) {
      expect(prompt.split('heron')).toHaveLength(at < 2 ? 3 : 4)
      expect(prompt.indexOf(atSystem.text)).toBeLessThan(prompt.indexOf(atTask.text))
    }
    expect(prompts[3]).toContain(`done 1\n\n${atTurn.text}`)
    // What stays extends: one row, every sampled token once, in the context that it was sampled in.
    const causes = forksOf(plain).map(({ cause }) => cause)
    expect(forksOf(log).map(({ cause }) => cause)).toEqual(causes)
    expect(checkSession(log)).toEqual([])
    expect(rowsOf(log, 'as_sampled')).toHaveLength(causes.length + 1)
    const row = rowsOf(log, 'as_sampled').at(-1)
    expect(trained(log, 'as_sampled')).toBe(sampled(log))
    const told = await Promise.all(
      (row?.injected ?? []).map(({ start, end }) =>
        textOf('scripted-hermes', [...(row?.tokens.subarray(start, end) ?? [])]),
      ),
    )
    // The last full stop is one token with the line break behind it, or with the one before.
    for (const { text } of all) expect(told.join('|')).toContain(text.slice(0, -1))
    // And without it, what a session without it has, to the id.
    expect(idsOf(log, 'clean')).toEqual(idsOf(plain, 'as_sampled'))
    expect(trained(log, 'clean')).toBe(sampled(log))
    const clean = rowsOf(log, 'clean').at(-1)
    expect(clean?.offContext).toBe(true)
    expect(clean?.logprobKind).toBe('unknown')
    for (const [at, bit] of clean?.mask.entries() ?? []) {
      if (bit === 1) expect(clean?.logprobs[at]).toBeNaN()
    }
    expect(rowsOf(plain, 'clean')).toEqual(rowsOf(plain, 'as_sampled'))
  })
})

it('only what was sampled behind an injection is off its context', async () => {
  const log = await done({ policy: { inject: [atTurn] } })
  const [clean] = rowsOf(log, 'clean')
  const [asSampled] = rowsOf(log, 'as_sampled')
  const before = clean?.segments
    .filter(({ trained: owns }) => owns)
    .map(({ start, end }) => clean.logprobs.subarray(start, end))
  expect(before?.map((part) => part.every(Number.isNaN))).toEqual([false, false, true, true])
  expect([...(before?.[0] ?? [])]).toEqual([
    ...(asSampled?.logprobs.subarray(asSampled.promptLength, asSampled.promptLength + (before?.[0]?.length ?? 0)) ??
      []),
  ])
})

it.each(['record', 'splice'] as const)(
  'what stands once is gone in the next prompt, which is a fork (%s)',
  async (strategy) => {
    const plain = await done({ policy: { strategy } })
    for (const once of [
      { ...atTurn, keep: 'once' as const },
      { ...atTask, keep: 'once' as const },
      { ...atSystem, keep: 'once' as const },
    ]) {
      const log = await done({ policy: { strategy, inject: [once] } })
      const at = once === undefined || typeof once.at === 'string' ? 0 : once.at.turn
      expect(await textOf('scripted-hermes', await promptOf(log, at))).toContain(once.text)
      for (let call = at + 1; call < log.calls.length; call += 1) {
        expect(await promptOf(log, call)).toEqual(await promptOf(plain, call))
      }
      expect(forksOf(log).map(({ cause, fromCallId }) => [cause, fromCallId])).toEqual([
        ['injected_removed', log.calls[at]?.intent.id],
      ])
      expect(trained(log, 'as_sampled')).toBe(sampled(log))
      expect(checkSession(log)).toEqual([])
      // Both ways lead to the rows of a session without it.
      for (const row of idsOf(log, 'clean'))
        expect(idsOf(plain, 'as_sampled').map((one) => one.slice(0, row.length))).toContainEqual(row)
    }
  },
)

it.each(['scripted-qwen3', 'scripted-qwen3-thinking', 'scripted-llama'])(
  'templates that write the past otherwise fork as without, and the clean rows are those of a session without (%s)',
  async (model) => {
    const other = await useEngine('--model', model)
    await other.control('/scripts', tidyScript)
    const on = await startProxy(other.url)
    try {
      for (const strategy of ['record', 'splice'] as const) {
        const plain = await done({ model, on, policy: { strategy } })
        const log = await done({ model, on, policy: { strategy, inject: all } })
        expect(forksOf(log).map(({ cause }) => cause)).toEqual(forksOf(plain).map(({ cause }) => cause))
        expect(idsOf(log, 'clean')).toEqual(idsOf(plain, 'as_sampled'))
      }
    } finally {
      await on[Symbol.asyncDispose]()
    }
  },
)

it('a session goes on after a restart with what it had', async () => {
  const store = await useStore()
  const own = await startProxy(engine.url, { recorder: store.recorder })
  const session = await own.open({ policy: { strategy: 'splice', inject: all } })
  let turn = 0
  let next: TestProxy | null = null
  const moved: typeof fetch = async (input, init) => {
    turn += 1
    if (turn === 3) {
      await own[Symbol.asyncDispose]()
      next = await startProxy(engine.url, { recorder: store.recorder, revives: () => true })
    }
    const url = typeof input === 'string' ? input : input instanceof URL ? input.href : input.url
    return fetch(next === null ? url : url.replace(own.origin, next.origin), init)
  }
  session.client.fetchWithTimeout = (url, init) => moved(url, init)
  await chat(session, { stream: false, tools: sameTools })
  const log = await store.recorder.session(session.id)
  expect(log.calls).toHaveLength(4)
  expect(forksOf(log)).toEqual([])
  expect(rowsOf(log, 'as_sampled')).toHaveLength(1)
  expect(idsOf(log, 'clean')).toEqual(idsOf(await done({ policy: { strategy: 'splice' } }), 'as_sampled'))
  if (next !== null) await (next as TestProxy)[Symbol.asyncDispose]()
})

it('a child sees what its parent saw, and a hint of its own from where it goes another way', async () => {
  const parent = await done({ policy: { inject: [atTask] } })
  const until = parent.calls[2]?.intent.id ?? ''
  const past: SessionPast = { log: parent, ancestors: [parent.session], until, onDivergence: 'refuse' }
  const same = await done({ policy: { inject: [atTask] }, past })
  expect(await promptOf(same, 2)).toEqual(await promptOf(parent, 2))
  expect(idsOf(same, 'clean')).toEqual(idsOf(await done({}), 'as_sampled'))
  const child = await done({ policy: { inject: [atTask, atTurn] }, past })
  expect(forksOf(child)).toEqual([])
  expect(await textOf('scripted-hermes', await promptOf(child, 2))).toContain(`done 1\n\n${atTurn.text}`)
  expect(idsOf(child, 'clean')).toEqual(idsOf(same, 'clean'))
})

it('answers that the harness shows as examples are none of the policy, and calls beside the conversation are left as they are', async () => {
  const session = await paddock.open({
    policy: {
      strategy: 'record',
      inject: [
        { ...atTurn, at: { turn: 1 } },
        { ...atTask, keep: 'once' },
      ],
    },
  })
  const messages = [
    { role: 'user' as const, content: 'Two and two?' },
    { role: 'assistant' as const, content: 'Four.' },
    { role: 'user' as const, content: 'Tidy up.' },
  ]
  await session.client.chat.completions.create({ model: 'scripted-hermes', messages })
  await session.client.completions.create({ model: 'scripted-hermes', prompt: 'heron?', max_tokens: 4 })
  const log = await session.log()
  expect(await textOf('scripted-hermes', await promptOf(log, 0))).toContain(`Two and two?\n\n${atTask.text}`)
  expect(await textOf('scripted-hermes', await promptOf(log, 0))).not.toContain(atTurn.text)
  expect(log.events.flatMap((event) => (event.kind === 'injected' ? [event.callId] : []))).toEqual([
    log.calls[0]?.intent.id,
  ])
})

it('where the engine renders nothing, the clean view has no row, and says so', async () => {
  const { vllmEngine } = await import('../../src/proxy/index.ts')
  const { promptIds: _none, ...silent } = vllmEngine({ url: engine.url })
  await using own = await startProxy(engine.url, { engine: silent })
  const session = await own.open({ policy: { strategy: 'record', inject: [atTask] } })
  await chat(session, { stream: false, tools: sameTools })
  const log = await session.log()
  expect(rowsOf(log, 'as_sampled')).toHaveLength(1)
  const built = buildRows(log, { rolloutId: 'r', groupId: 'g', taskDigest: 't', view: 'clean' })
  expect(built.rows).toEqual([])
  expect(built.outside.notExported).toEqual({ clean_unknown: sampled(log) })
})

it('a recorded request is read as the policy saw it, or as the harness wrote it', async () => {
  for (const harness of Object.values(harnesses)) {
    const log = await done({ harness, policy: { inject: all } })
    const last = log.calls.at(-1)
    if (last === undefined) throw new Error('no call')
    const read = (view: RowView) => Buffer.from(chatRequestOf(log, last, view) ?? []).toString()
    expect(read('clean')).not.toContain('heron')
    for (const { text } of all) expect(read('as_sampled')).toContain(text)
  }
})
