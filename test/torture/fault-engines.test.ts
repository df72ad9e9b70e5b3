import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Lab, keyHeader, openLab, post } from '../lab/lab.ts'
import { dialects, official } from '../lab/official.ts'
import { speakerOf } from '../lab/speaker.ts'
import { sized } from './size.ts'

/** An engine that says nothing for long, with the limits that hold by default (10 s for headers and between comments), in every dialect at once. */
const seconds = sized(60, 15)
/** A waiting client gets a comment every ten seconds. */
const comments = Math.floor(seconds / 15)
const question = 'Wait for it.'
const words = 'one two three four five six seven'

let lab: Lab
beforeAll(async () => {
  lab = await openLab()
  await lab.script(question, [{ say: words }])
})
afterAll(() => lab[Symbol.asyncDispose]())

it(`${seconds} seconds of silence, before the first byte and in the middle: every client gets its answer`, async () => {
  const cases = dialects.flatMap((dialect) =>
    ['before_first_byte', 'mid_stream'].flatMap((at) =>
      (['record', 'splice'] as const).flatMap((strategy) =>
        [false, true].map((stream) => ({ dialect, at, strategy, stream })),
      ),
    ),
  )
  const each = cases.map(async ({ dialect, at, strategy, stream }) => {
    const rollout = await lab.rollout({ strategy })
    await lab.fault({ kind: 'stall', at, seconds, token: 2, match: { session: rollout.sessionId }, count: 0 })
    const speaker = speakerOf(dialect, 'Take care.')
    speaker.user(question)
    const { path, body } = speaker.request({ model: lab.model, stream, maxTokens: 100, tools: [] })
    const [got, raw] = await Promise.all([
      official[dialect]({ root: rollout.root, key: rollout.key, model: lab.model }, question, stream),
      post(`${rollout.root}${path}`, body, keyHeader(dialect, rollout.key)),
    ])
    const kept = raw.text.match(dialect === 'messages' ? /^event: ping$/gm : /^: /gm)?.length ?? 0
    return {
      case: `${dialect} ${at} ${strategy} ${stream}`,
      text: got.text,
      status: raw.status,
      kept: stream ? kept >= comments : kept === 0,
    }
  })
  const ended = await Promise.all(each)
  expect(ended).toEqual(ended.map((one) => ({ case: one.case, text: words, status: 200, kept: true })))
  expect(await lab.problems()).toEqual([])
})
