import { describe, expect, it } from 'vitest'
import { type AnswerFacts, type Difference, driftCause } from './drift.ts'
import { tokenText } from './token-text.ts'

/** An answer in tokens of one word each. */
function facts(tokens: readonly string[], more: Partial<AnswerFacts> = {}): AnswerFacts {
  return {
    reasoning: null,
    content: null,
    argumentTexts: [],
    finishReason: 'stop',
    stoppedByString: false,
    turn: '',
    text: tokenText(tokens, more.content ?? null),
    ...more,
  }
}

const difference = (answer: AnswerFacts | null, at: number, more: Partial<Difference> = {}): Difference => ({
  answer,
  at,
  echoed: null,
  edited: false,
  dropped: false,
  tokens: Int32Array.from({ length: 8 }, (_, index) => index + 10),
  got: new Int32Array(0),
  cleared: false,
  ambiguous: false,
  shorter: false,
  ...more,
})

const tight = '{"a":1}'
const python = '{"a": 1}'
const call = (text: string): readonly string[] => ['<call>', text, '</call>', '<end>']
const echo = (text: string): unknown => ({ tool_calls: [{ function: { arguments: text } }] })

const thinking = facts(['<think>', 'h', 'm', 'm', '</think>', 'a', '<end>'], { reasoning: 'hmm' })

describe('the cause of a fork', () => {
  it.each<[string, Difference]>([
    ['ambiguous', difference(facts(['a', '<end>']), 0, { ambiguous: true })],
    ['compaction', difference(facts(['a', '<end>']), 0, { edited: true, dropped: true })],
    ['harness_rewrite', difference(facts(['a', '<end>']), 0, { edited: true, shorter: true })],
    [
      'harness_rewrite',
      difference(facts(['ab', '\n', '<end>'], { content: 'ab\n' }), 1, { echoed: { content: 'ab' } }),
    ],
    ['template', difference(facts(['ab', '\n', '<end>'], { content: 'ab\n' }), 1, { echoed: { content: 'ab\n' } })],
    ['harness_rewrite', difference(facts(['a', '<end>']), 0, { edited: true })],
    ['context_edit', difference(facts(['a', '<end>']), 0, { edited: true, cleared: true, shorter: true })],
    ['harness_rewrite', difference(facts(['a', '<end>']), -40)],
    ['truncated', difference(facts(['a', '<end>']), -40, { shorter: true })],
    ['stop_cut', difference(facts(['a', 'b'], { stoppedByString: true }), 1)],
    ['truncated', difference(facts(['a', 'b'], { finishReason: 'length' }), 1)],
    ['think_stripped', difference(facts(['<think>', 'hm', '</think>', 'a', '<end>'], { reasoning: 'hm' }), 0)],
    ['think_stripped', difference(facts(['hm', '</think>', 'a', '<end>'], { reasoning: 'hm' }), -2)],
    ['boundary_merge', difference(thinking, 1, { got: Int32Array.of(99, 12, 13, 14, 15) })],
    ['boundary_merge', difference(thinking, 2)],
    ['think_stripped', difference({ ...thinking, text: null }, 1)],
    ['unknown', difference({ ...thinking, text: null }, 6)],
    ['think_stripped', difference(thinking, 1, { got: Int32Array.of(14, 15, 20) })],
    ['json_reserialised', difference(facts(call(tight), { argumentTexts: [tight] }), 1, { echoed: echo(tight) })],
    ['json_reserialised', difference(facts(call(python), { argumentTexts: [python] }), 1, { echoed: echo(tight) })],
    ['boundary_merge', difference(facts(call(python), { argumentTexts: [python] }), 1, { echoed: echo(python) })],
    ['boundary_merge', difference(facts(['ab', 'c', '<end>']), 1)],
    ['boundary_merge', difference(facts(['ab', ' ', 'c', '<end>'], { content: 'ab c' }), 1)],
    ['template', difference(facts(['ab', '\n', '<end>'], { content: 'ab\n' }), 1)],
    ['template', difference(facts(['ab', '\n', '<end>']), 1)],
    ['template', difference(facts(['ab', '<end>']), 1)],
    ['unknown', difference(null, 0)],
  ])('%s', (cause, given) => {
    expect(driftCause(given)).toBe(cause)
  })
})
