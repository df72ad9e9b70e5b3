import { describe, expect, it } from 'vitest'
import type { ChoiceAnswer } from '../dialects/chat/answer.ts'
import { stopCutOf } from './stop-cut.ts'

const choice = (tokenTexts: string[], more: Partial<ChoiceAnswer>): ChoiceAnswer =>
  ({
    index: 0,
    nativeId: null,
    content: null,
    refusal: null,
    reasoning: null,
    reasoningName: 'reasoning',
    toolCalls: [],
    finishReason: 'stop',
    stopReason: null,
    rawMessage: null,
    tokenIds: tokenTexts.map((_, at) => at),
    logprobs: tokenTexts.map(() => -1),
    tokenTexts,
    alternatives: [],
    logprobEntries: [],
    weightVersions: [],
    ...more,
  }) as ChoiceAnswer

describe('where a stop string cut an answer whose engine does not say so', () => {
  it.each([
    ['between two tokens', ['a', 'b', 'STOP', 'c'], { content: 'ab' }, ['STOP'], { visible: 2, exact: true }],
    ['inside a token', ['a', 'bST', 'OP c'], { content: 'ab' }, ['STOP'], { visible: 1, exact: false }],
    ['at the first of several', ['a', 'X', 'b', 'Y'], { content: 'a' }, ['Y', 'X'], { visible: 1, exact: true }],
    [
      'behind thinking',
      ['<t>', 'hm', '</t>', 'a', 'X', 'b'],
      { content: 'a', reasoning: 'hm' },
      ['X'],
      { visible: 4, exact: true },
    ],
    ['with the string shown', ['a', 'X', 'b'], { content: 'aX' }, ['X'], { visible: 2, exact: true }],
    ['before anything', ['X', 'a'], { content: '' }, ['X'], { visible: 0, exact: true }],
    ['nowhere: the end of the turn is named too', ['a', 'b', '<end>'], { content: 'ab' }, ['<end>'], null],
    ['nowhere: the engine went on', ['a', 'X', 'b'], { content: 'aXb' }, ['X'], null],
    ['nowhere: the string is not there', ['a', 'b'], { content: 'a' }, ['X'], null],
    ['nowhere: none was asked for', ['a', 'X'], { content: 'a' }, [], null],
    ['unknown: some texts are missing', ['a', 'X'], { content: 'a', tokenIds: [1, 2, 3] }, ['X'], null],
  ] as const)('%s', (_where, texts, more, stops, cut) => {
    expect(stopCutOf(choice([...texts], more as Partial<ChoiceAnswer>), stops)).toEqual(cut)
  })

  it('is where the engine says, if it does', () => {
    expect(stopCutOf(choice(['a', 'X'], { content: 'a', stopReason: 'X' }), [])).toEqual({ visible: 1, exact: true })
  })
})
