import { describe, expect, it } from 'vitest'
import { newId } from '../../core/index.ts'
import { Answer } from '../dialects/chat/answer.ts'
import type { ContinuedAnswer } from '../session/conversation.ts'
import { RecordedTree } from './recorded-tree.ts'

const newConversation = { continues: [], edited: false, at: -1, echoed: [], replaced: null }

/** Adds a call of a new conversation with two choices; returns its id. */
function addCall(tree: RecordedTree, number: number): string {
  const callId = newId()
  const answer = new Answer(false)
  answer.promptIds = Int32Array.of(1, 2, number)
  const choice = (index: number): unknown => ({
    index,
    message: { role: 'assistant', content: `${number}/${index}` },
    finish_reason: 'stop',
    token_ids: [1000 + index, number],
    logprobs: { content: [0, 1].map(() => ({ token: 't', logprob: -1 })) },
  })
  answer.add({ model: 'm', choices: [choice(0), choice(1)] })
  tree.add({
    callId,
    sessionId: 's',
    answer,
    whole: true,
    match: newConversation,
    messages: [{ role: 'user', content: `${number}` }],
    forked: null,
    logprobKind: 'unknown',
    gives: { tokenIds: true, logprobs: true },
    n: 2,
    stops: [],
    vocabulary: null,
    engineChanged: false,
    model: 'm',
  })
  return callId
}

describe('answers of a session', () => {
  it('are known however long ago they came, also those that came since somebody asked', () => {
    const tree = new RecordedTree('s')
    const calls: string[] = []
    for (let number = 0; number < 120; number += 1) {
      calls.push(addCall(tree, number))
      // Every few calls all are asked for, far ones first.
      if (number % 37 !== 36) continue
      for (const [place, callId] of calls.entries()) {
        for (const choice of [0, 1]) {
          const [answer, ...others] = tree.known([{ callId, choice }])
          expect(others).toEqual([])
          expect(answer).toMatchObject({ choice, facts: { content: `${place}/${choice}` } })
          expect([...(answer?.node.tokens ?? [])]).toEqual([1000 + choice, place])
        }
      }
    }
  })

  it('that never came are not known', () => {
    const tree = new RecordedTree('s')
    const unknown: ContinuedAnswer = { callId: newId(), choice: 0 }
    expect(tree.known([unknown])).toEqual([])
    const calls = Array.from({ length: 40 }, (_, number) => addCall(tree, number))
    const thirdChoices = calls.map((callId): ContinuedAnswer => ({ callId, choice: 2 }))
    expect(tree.known([unknown, ...thirdChoices])).toEqual([])
  })
})
