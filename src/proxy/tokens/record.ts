import { type Id, newId } from '../../core/index.ts'
import type { Segment } from '../../trajectory/index.ts'
import type { AnsweredCall, CallTokens, TokenStrategyDriver } from './contract.ts'
import { alignedLogprobs, findingsOf } from './integrity.ts'

export function recordStrategy(sessionId: Id): TokenStrategyDriver {
  return {
    name: 'record',
    add(call: AnsweredCall): CallTokens {
      const { answer } = call
      const segments: Segment[] = []
      const choiceSegments = new Map<number, Id>()
      let parent: Segment['parent'] = null
      if (answer.promptIds !== null && answer.promptIds.length > 0) {
        const id = newId()
        parent = { segmentId: id, offset: answer.promptIds.length }
        segments.push({
          id,
          sessionId,
          callId: call.callId,
          choice: null,
          parent: null,
          origin: 'prompt',
          tokens: answer.promptIds,
          logprobs: null,
          flags: null,
          logprobKind: 'unknown',
          policySpans: [],
          replayOf: null,
          stopCut: false,
        })
        for (const choice of answer.choices) {
          const sid = newId()
          choiceSegments.set(choice.index, sid)
          segments.push({
            id: sid,
            sessionId,
            callId: call.callId,
            choice: choice.index,
            parent,
            origin: 'sampled',
            tokens: Int32Array.from(choice.tokenIds),
            ...alignedLogprobs(choice),
            logprobKind: call.logprobKind,
            policySpans: [],
            replayOf: null,
            stopCut: false,
          })
        }
      }
      return {
        segments,
        spans: [],
        promptLeaf: parent?.segmentId ?? null,
        forks: [],
        choiceSegments,
        findings: findingsOf(call),
      }
    },
  }
}
