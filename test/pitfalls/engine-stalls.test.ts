import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Lab, openLab, keyHeader, post } from '../lab/lab.ts'
import { dialects, official } from '../lab/official.ts'
import { speakerOf } from '../lab/speaker.ts'

/**
 * An engine that falls silent. Limits are scaled down here, seconds for minutes; `test/torture/fault-engines.test.ts`
 * waits for real ones with the limits that hold by default.
 */
const question = 'Wait for it.'
const words = 'one two three four five six seven'

/** What keeps each dialect's connection alive. */
const keepAlives = {
  chat: /^: ?/m,
  responses: /^: ?/m,
  messages: /^event: ping$/m,
  gemini: /^: ?/m,
} as const

describe('an engine that is silent for a while', () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await openLab({ limits: { keepAliveMs: 300, stallMs: 30_000 } })
    await lab.script(question, [{ say: words }])
  })
  afterAll(() => lab[Symbol.asyncDispose]())

  it.concurrent.each(['before_first_byte', 'mid_stream'])(
    'is waited for %s: every official client gets its answer, streams are kept alive',
    async (at) => {
      const each = dialects.flatMap((dialect) =>
        [false, true].map(async (stream) => {
          const rollout = await lab.rollout()
          const order = { kind: 'stall', at, seconds: 2.6, token: 2, match: { session: rollout.sessionId }, count: 0 }
          await lab.fault(order)
          const pointed = { root: rollout.root, key: rollout.key, model: lab.model }
          const speaker = speakerOf(dialect, 'Take care.')
          speaker.user(question)
          const { path, body } = speaker.request({ model: lab.model, stream, maxTokens: 100, tools: [] })
          const [got, raw] = await Promise.all([
            official[dialect](pointed, question, stream),
            post(`${rollout.root}${path}`, body, keyHeader(dialect, rollout.key)),
          ])
          expect([dialect, stream, got.text]).toEqual([dialect, stream, words])
          expect([dialect, stream, raw.status, keepAlives[dialect].test(raw.text)]).toEqual([
            dialect,
            stream,
            200,
            stream,
          ])
          const { calls } = await rollout.log()
          expect(calls.map((call) => call.commit?.outcome.kind)).toEqual(['complete', 'complete'])
          expect(lab.proxy.sessionStats(rollout.sessionId).taints).toEqual([])
          expect((await rollout.judge()).report.deviations).toEqual([])
        }),
      )
      await Promise.all(each)
    },
  )
})

describe('an engine that is silent for too long', () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await openLab({ limits: { keepAliveMs: 300, stallMs: 1000 } })
    await lab.script(question, [{ say: words }])
  })
  afterAll(() => lab[Symbol.asyncDispose]())

  it.concurrent.each(['before_first_byte', 'mid_stream'])(
    'is given up %s: an error that each client understands',
    async (at) => {
      const each = dialects.flatMap((dialect) =>
        [false, true].map(async (stream) => {
          const rollout = await lab.rollout()
          await lab.fault({ kind: 'stall', at, seconds: 60, token: 2, match: { session: rollout.sessionId }, count: 0 })
          const pointed = { root: rollout.root, key: rollout.key, model: lab.model }
          await expect(official[dialect](pointed, question, stream), `${dialect} ${stream}`).rejects.toThrow(/silent/)
          const { calls } = await rollout.log()
          expect(calls[0]?.commit?.outcome).toMatchObject({ kind: 'engine_error', code: 'ENGINE_TIMEOUT' })
          expect(lab.proxy.sessionStats(rollout.sessionId).taints).toHaveLength(1)
        }),
      )
      await Promise.all(each)
      expect(await lab.problems()).toEqual([])
    },
  )
})
