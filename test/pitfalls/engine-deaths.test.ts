import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cut, type Guillotine, midId, startGuillotine, streamCuts, wholeCuts } from '../lab/guillotine.ts'
import { type Lab, type LabRollout, openLab } from '../lab/lab.ts'
import { dialects, type Got, official } from '../lab/official.ts'
import type { DialectName } from '../lab/speaker.ts'

/**
 * An engine that dies at every class of places in its answer: the harness's own client gets an error of its dialect and
 * never something that looks like an answer; the store says what happened and keeps what came.
 */
const question = 'Wörk it out.'
const words = 'ünï one two three four five six seven eight nine ten'

let lab: Lab
let wire: Guillotine
beforeAll(async () => {
  lab = await openLab({
    between: async (url) => {
      wire = await startGuillotine(url)
      return wire.url
    },
  })
  await lab.script(question, [{ say: words }])
})
afterAll(async () => {
  await lab[Symbol.asyncDispose]()
  await wire[Symbol.asyncDispose]()
})

interface Ended {
  readonly rollout: LabRollout
  readonly got: Got | null
  readonly error: unknown
}

async function askOver(
  strategy: 'record' | 'splice',
  { dialect, stream, cut }: { readonly dialect: DialectName; readonly stream: boolean; readonly cut: Cut },
): Promise<Ended> {
  const rollout = await lab.rollout({ strategy })
  wire.arm(strategy === 'record' ? '/v1/chat/completions' : '/inference/v1/generate', cut)
  const pointed = { root: rollout.root, key: rollout.key, model: lab.model }
  const ended = await official[dialect](pointed, question, stream).then(
    (got) => ({ rollout, got, error: null }),
    (error: unknown) => ({ rollout, got: null, error }),
  )
  wire.disarm()
  return ended
}

/** The record of a call that broke: an error outcome, a taint, no sample that may train, and what came is the truth. */
async function expectBroken({ rollout, got, error }: Ended): Promise<void> {
  expect(got).toBeNull()
  expect(error).toBeInstanceOf(Error)
  const { calls, segments } = await rollout.log()
  expect(calls).toHaveLength(1)
  expect(calls[0]?.commit?.outcome).toMatchObject({
    kind: 'engine_error',
    code: expect.stringMatching(/^ENGINE_(DIED|UNREACHABLE)$/),
  })
  expect(lab.proxy.sessionStats(rollout.sessionId).taints).toHaveLength(1)
  const sampled = segments.filter((segment) => segment.origin === 'sampled').flatMap((one) => [...one.tokens])
  const [truth] = await rollout.truth()
  expect(truth?.tokens.slice(0, sampled.length) ?? []).toEqual(sampled)
  const { manifest } = await rollout.judge({ includeTainted: true })
  expect([manifest.rows.count, manifest.tokens.trainable, manifest.tokens.sampled]).toEqual([0, 0, sampled.length])
}

describe.each([
  ['record', dialects],
  // What stands above the strategy is the same for all of them.
  ['splice', ['chat', 'messages']],
] as const)('an engine that dies (%s)', (strategy, spoken) => {
  it.each(spoken.flatMap((dialect) => Object.keys(streamCuts).map((place) => ({ dialect, place }))))(
    'in a stream $place, $dialect',
    async ({ dialect, place }) => {
      const cut = place === 'mid_token' && strategy === 'splice' ? midId : streamCuts[place]
      if (cut === undefined) throw new Error('no such place')
      await expectBroken(await askOver(strategy, { dialect, stream: true, cut }))
    },
  )

  it.each(spoken.flatMap((dialect) => Object.keys(wholeCuts).map((place) => ({ dialect, place }))))(
    'in a whole answer $place, $dialect',
    async ({ dialect, place }) => {
      const cut = place === 'mid_token' && strategy === 'splice' ? midId : wholeCuts[place]
      if (cut === undefined) throw new Error('no such place')
      await expectBroken(await askOver(strategy, { dialect, stream: false, cut }))
    },
  )
})

it('leaves a store in which nothing is wrong', async () => {
  expect(await lab.problems()).toEqual([])
})
