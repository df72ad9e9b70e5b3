/** Whatever an engine says: nothing is trained that it did not sample as told, and each sampled token is in a bucket. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId, sha256 } from '../../../src/core/index.ts'
import { createProxy, type Proxy, type ProxyEvent, vllmEngine } from '../../../src/proxy/index.ts'
import {
  callFaultsOf,
  fsck,
  openStore,
  type Row,
  selectForExport,
  type SessionLog,
  type Store,
} from '../../../src/trajectory/index.ts'
import { verdictOf } from '../../fidelity/world.ts'
import { tempDir } from '../../fixtures/temp-dir.ts'
import { rawPost } from '../support.ts'
import { type HostileEngine, hostileEngine } from './hostile-engine.ts'
import { chatShapes, errorShapes, otherShapes } from './shapes.ts'

let engine: HostileEngine
let directory: string
let store: Store
let proxy: Proxy
let origin: string
let slots = 0
const events: ProxyEvent[] = []
const group = { id: newId(), runId: newId(), taskDigest: sha256('t'), promptVariant: 'default', createdAt: 1 }

beforeAll(async () => {
  directory = tempDir()
  engine = await hostileEngine([...chatShapes, ...errorShapes, ...otherShapes])
  store = await openStore(directory)
  const { catalogue, recorder } = store
  proxy = createProxy({
    recorder,
    engine: vllmEngine({ url: engine.url }),
    putFingerprint: (fingerprint) => catalogue.putFingerprint(fingerprint),
    onEvent: (event) => events.push(event),
  })
  origin = (await proxy.listen({})).origin
  const task = { name: 't', environment: 'terminal', instruction: 't', split: 'train', data: {}, source: 'test' }
  await catalogue.putTask({ ...task, digest: group.taskDigest })
  await catalogue.putRun({ id: group.runId, name: 'r', createdAt: 1, config: {} })
  await catalogue.putGroup(group)
})
afterAll(async () => {
  await proxy.close()
  await store.close()
  await engine[Symbol.asyncDispose]()
})

const said = (text: string) => ({ messages: [{ role: 'user', content: text }] })
/** A question of these words in each dialect, and where it is asked. */
const questions = {
  chat: (text: string, stream: boolean) => ({
    path: 'v1/chat/completions',
    body: { model: 'm', stream, ...said(text) },
  }),
  messages: (text: string, stream: boolean) => ({
    path: 'v1/messages',
    body: { model: 'm', stream, max_tokens: 100, ...said(text) },
  }),
  responses: (text: string, stream: boolean) => ({ path: 'v1/responses', body: { model: 'm', stream, input: text } }),
  gemini: (text: string, stream: boolean) => ({
    path: `v1beta/models/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: { contents: [{ role: 'user', parts: [{ text }] }] },
  }),
} as const
type Dialect = keyof typeof questions
const dialects = Object.keys(questions) as readonly Dialect[]

/** A rollout with a session, and what an export makes of it. */
async function rollout() {
  const id = newId()
  slots += 1
  const { catalogue, recorder } = store
  await catalogue.putRollout({
    id,
    runId: group.runId,
    groupId: group.id,
    slot: slots,
    attempt: 0,
    harness: 'h',
    createdAt: 1,
  })
  await catalogue.startRollout(id, 2)
  const { session, key } = await proxy.openSession({ rolloutId: id, policy: { strategy: 'record' } })
  const ask = async (shape: string, stream: boolean, more: object = {}, dialect: Dialect = 'chat') => {
    const { path, body } = questions[dialect](shape, stream)
    const answer = await rawPost(`${origin}/s/${session.id}/${path}`, JSON.stringify({ ...body, ...more }), {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
    })
    return { status: answer.status, text: await answer.text() }
  }
  const judge = async () => {
    await proxy.closeSession(session.id)
    await catalogue.endRollout(id, 3, 'completed', '')
    await catalogue.appendVerdict(verdictOf(id, 1))
    const selection = selectForExport({ recorder, catalogue }, { rolloutIds: [id] })
    const rows: Row[] = []
    for await (const one of selection) rows.push(...one.rows)
    const log = await recorder.session(session.id)
    return { log, rows, tokens: selection.summary().accounting }
  }
  return { id: session.id, ask, judge }
}

const findingsOf = (log: SessionLog) => log.calls.map((call) => call.commit?.findings ?? [])
const sum = (counts: object) => Object.values(counts).reduce<number>((all, one) => all + Number(one), 0)

describe('an engine that tells what cannot be true', () => {
  const cases = chatShapes.flatMap((shape) =>
    [true, false]
      .filter((stream) => shape.only !== (stream ? 'whole' : 'stream'))
      .flatMap((stream) => dialects.map((dialect) => ({ shape, stream, dialect }))),
  )
  it.each(cases)('$shape.name, streamed: $stream, in $dialect', async ({ shape, stream, dialect }) => {
    const { ask, judge } = await rollout()
    const told = await ask(shape.name, stream, {}, dialect)
    expect(told.status).toBe(200)
    if (shape.name.startsWith('tools')) expect(told.text).toContain('"f"')
    const { log, rows, tokens } = await judge()
    const [findings = []] = findingsOf(log)
    expect(findings).toEqual(expect.arrayContaining([...shape.finds]))
    if (shape.finds.length === 0) expect(findings).toEqual([])
    // A call keeps its arguments, whatever number it has.
    if (shape.name.startsWith('tools')) {
      expect(log.calls[0]?.commit?.choices[0]?.message).toContain('{"name":"f","arguments":"{\\"a\\":1}"}')
    }
    const trained = shape.trained ?? (shape.finds.length === 0 ? 3 : 0)
    expect(rows.reduce((count, row) => count + sum(row.mask), 0)).toBe(trained)
    expect(tokens.trainable).toBe(trained)
    // What the engine sampled, by its ids and its own count, is in the buckets to the token.
    const sampled = shape.sampled ?? 3
    expect([tokens.sampled, trained + sum(tokens.masked) + sum(tokens.notExported)]).toEqual([sampled, sampled])
    // A row holds nothing that a trainer could not look up.
    for (const row of rows) expect([...row.tokens].filter((id) => id < 0 || id >= 50_000)).toEqual([])
    for (const row of rows) expect(row.promptLength).toBeGreaterThan(0)
  })

  it.each(['an error as an object', 'an error as a text', 'an error as a piece', 'an error beside choices'])(
    '%s ends a stream as a fault of the engine, whatever it says behind it',
    async (name) => {
      for (const dialect of dialects) {
        const { id, ask, judge } = await rollout()
        const { text } = await ask(name, true, {}, dialect)
        expect(text).toContain('CUDA out of memory')
        expect(text).not.toMatch(/\[DONE\]|message_stop|response\.completed|finishReason/)
        expect(proxy.sessionStats(id).taints).toEqual(['ENGINE_ERROR'])
        const { log } = await judge()
        expect(log.calls[0]?.commit?.outcome).toMatchObject({ kind: 'engine_error', code: 'ENGINE_ERROR' })
      }
    },
  )

  it('two samples in the pieces of one are none, where two were asked for', async () => {
    const { ask, judge } = await rollout()
    await ask('two samples as one', true, { n: 2 })
    const { log, tokens } = await judge()
    expect(findingsOf(log)).toEqual([['duplicate_choice']])
    expect(tokens).toMatchObject({ sampled: 6, trainable: 0 })
  })

  it.each([true, false])('an answer that ends in an error is a fault of the engine, streamed: %s', async (stream) => {
    const { id, ask, judge } = await rollout()
    await ask('an error for an end', stream)
    expect(proxy.sessionStats(id).taints).toEqual(['ENGINE_DIED'])
    const { log, tokens } = await judge()
    expect(log.calls[0]?.commit?.outcome.kind).toBe('engine_error')
    expect(tokens).toMatchObject({ sampled: 3, trainable: 0 })
  })

  it('leaves a store that is whole', async () => {
    await store.recorder.flush()
    expect((await fsck(directory)).problems).toEqual([])
  })
})

describe('an engine that goes on so', () => {
  it('is asked for whole answers after the first fault in a stream; the client still gets streams', async () => {
    const { id, ask, judge } = await rollout()
    const first = await ask('an id too few', true)
    expect(engine.asked.at(-1)).toEqual({ stream: true })
    const second = await ask('nothing', true)
    expect(engine.asked.at(-1)).toEqual({ stream: false })
    expect([first.status, second.status]).toEqual([200, 200])
    expect(second.text).toMatch(/^data: \{.*\n\n(.*\n\n)*data: \[DONE\]\n\n$/)
    expect(events).toContainEqual({
      type: 'engine',
      what: 'distrusted',
      replica: engine.url,
      detail: `session ${id}: count_mismatch; whole answers are asked for from now on`,
    })
    const { log, tokens } = await judge()
    expect(findingsOf(log)).toEqual([['count_mismatch', 'logprob_count_mismatch'], []])
    expect(tokens).toEqual({
      sampled: 6,
      trainable: 3,
      byAnswerLength: [{ from: 2, to: 3, answers: 2, sampled: 5, trainable: 3 }],
      masked: {},
      notExported: { count_mismatch: 2, missing_ids: 1 },
    })
  })

  it.each(['ids', 'logprobs'])('is asked for whole answers where its streams lack %s and they do not', async (what) => {
    const { id, ask, judge } = await rollout()
    for (const shape of [`a stream without ${what}`, 'nothing', 'nothing'])
      expect((await ask(shape, true)).status).toBe(200)
    expect(engine.asked.slice(-3)).toEqual([{ stream: true }, { stream: false }, { stream: false }])
    expect(events).toContainEqual(
      expect.objectContaining({
        what: 'distrusted',
        detail: expect.stringContaining(`${id}: missing_${what}; whole answers`),
      }),
    )
    const { tokens } = await judge()
    expect([tokens.sampled, tokens.trainable]).toEqual([9, 6])
  })

  it.each(['ids', 'logprobs'])('is asked for streams as before where whole answers lack %s too', async (what) => {
    const { ask } = await rollout()
    for (let call = 0; call < 4; call += 1) await ask(`an answer without ${what}`, true, { seed: call })
    expect(engine.asked.slice(-4).map(({ stream }) => stream)).toEqual([true, false, true, true])
  })

  it.each([
    ['abc', { stop: ['END'] }, 3],
    ['abc', { stop: ['qr', 'END'] }, 3],
    ['abcEND', { stop: ['END'], include_stop_str_in_output: true }, 6],
    // The engine ignored the string, or the request has none.
    ['abcENDqr', { stop: ['END'] }, 8],
    ['abc', { stop: ['other'] }, 8],
    ['abc', {}, 8],
  ])('says %s for ids that spell abcENDqr, with %o: %i tokens train', async (text, more, trained) => {
    const { ask, judge } = await rollout()
    await ask(`the text ${text}`, false, more)
    const { tokens } = await judge()
    const cut = 8 - trained
    expect(tokens).toMatchObject({ sampled: 8, trainable: trained, masked: cut === 0 ? {} : { stop_cut: cut } })
  })

  it('is distrusted after three answers in a row with logprobs that are no numbers, none of which trains', async () => {
    const { id, ask, judge } = await rollout()
    const told = () =>
      events.filter((event) => event.type === 'engine' && event.detail.startsWith(`session ${id}: nan_logprob`))
    for (let call = 0; call < 5; call += 1) {
      expect(told()).toHaveLength(call < 3 ? 0 : 1)
      expect((await ask('a bare NaN', call % 2 === 0, { seed: call })).status).toBe(200)
    }
    expect(told()).toMatchObject([{ what: 'distrusted', detail: expect.stringContaining('3 answers in a row') }])
    expect(proxy.sessionStats(id)).toMatchObject({ taints: [], unsound: 'nan_logprob' })
    expect(callFaultsOf(await store.recorder.session(id)).unsound).toBe('nan_logprob')
    const { tokens } = await judge()
    expect(tokens).toMatchObject({ sampled: 15, trainable: 0, masked: { nan_logprob: 15 } })
  })

  it('leaves something to train where one answer is sound', async () => {
    const { id, ask, judge } = await rollout()
    await ask('a bare NaN', false, { seed: 1 })
    await ask('a negative id', false, { seed: 2 })
    expect(proxy.sessionStats(id).unsound).toBe('nan_logprob')
    await ask('nothing', false, { seed: 3 })
    expect(proxy.sessionStats(id).unsound).toBeNull()
    expect((await judge()).tokens).toMatchObject({ sampled: 9, trainable: 3, masked: { nan_logprob: 3 } })
  })

  it('is refused by name after three whole answers in a row, and the rollout is tainted', async () => {
    const { id, ask, judge } = await rollout()
    for (let call = 0; call < 3; call += 1) expect((await ask('a negative id', false, { seed: call })).status).toBe(200)
    const refused = await ask('nothing', false)
    expect(refused.status).toBe(502)
    expect(JSON.parse(refused.text).error).toMatchObject({
      code: 'ENGINE_UNTRUSTED',
      message: expect.stringContaining(`vllm at ${engine.url} keeps telling what cannot be true: \`invalid_ids\``),
    })
    expect(proxy.sessionStats(id)).toMatchObject({ lastError: 'ENGINE_UNTRUSTED', taints: ['ENGINE_UNTRUSTED'] })
    const { log, tokens } = await judge()
    expect(log.calls.at(-1)?.commit?.outcome).toMatchObject({ kind: 'refused', code: 'ENGINE_UNTRUSTED' })
    expect(tokens).toMatchObject({ sampled: 9, trainable: 0 })
  })

  it('is believed again after an answer that holds', async () => {
    const { ask } = await rollout()
    for (const shape of ['a negative id', 'an id of null', 'nothing', 'a negative id', 'an id of true', 'nothing']) {
      expect((await ask(shape, false)).status).toBe(200)
    }
  })

  it('answers that broke the rules are context at most: what holds behind them is trained', async () => {
    const { ask, judge } = await rollout()
    await ask('a higher count', false)
    await ask('nothing', false)
    const { log, tokens } = await judge()
    expect(findingsOf(log)).toEqual([['count_mismatch'], []])
    expect(tokens).toEqual({
      sampled: 12,
      trainable: 3,
      byAnswerLength: [{ from: 2, to: 3, answers: 2, sampled: 6, trainable: 3 }],
      masked: {},
      notExported: { count_mismatch: 3, missing_ids: 6 },
    })
  })
})
