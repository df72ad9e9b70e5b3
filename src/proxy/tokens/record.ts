import { type Id, newId, type PolicySpan } from '../../core/index.ts'
import type { Fork, Segment, Span } from '../../trajectory/index.ts'
import type { ChoiceAnswer } from '../dialects/chat/answer.ts'
import type { AnsweredCall, CallTokens, TokenStrategyDriver } from './contract.ts'
import { answerFacts, type AnswerFacts, driftCause } from './drift.ts'
import { alignedLogprobs, findingsOf, producedSomething } from './integrity.ts'
import type { Upstream } from '../upstream.ts'
import { PathTree, type PromptPlace } from './path-tree.ts'

/** How many ids around a difference go into the drift ledger. */
const ledgerWindow = 16

/**
 * Strategy `record`: the engine renders and samples, the ids of its answer are hung on the session's tree. A prompt
 * that extends an earlier path shares its segments; one that should have and did not is a fork with a cause.
 */
export function recordStrategy(sessionId: Id, upstream: Upstream): TokenStrategyDriver {
  const tree = new RecordedTree(sessionId)
  return {
    strategyFor: () => 'record',
    send: ({ path, body, callId }, sink) => upstream.send(path, body, { callId, sessionId }, sink),
    add: (call) => tree.add(call),
  }
}

class RecordedTree {
  private readonly tree = new PathTree()
  private readonly answers = new Map<string, { readonly segment: Segment; readonly facts: AnswerFacts }>()
  private readonly sessionId: Id

  constructor(sessionId: Id) {
    this.sessionId = sessionId
  }

  add(call: AnsweredCall): CallTokens {
    const { answer } = call
    const segments: Segment[] = []
    const spans: Span[] = []
    const forks: Fork[] = []
    const choiceSegments = new Map<number, Id>()
    const ids = answer.promptIds
    let parent: Segment['parent'] = null
    if (ids !== null && ids.length > 0) {
      const expected = this.expected(call)
      const place = this.tree.place(ids, new Set(expected.map((segment) => segment.id)))
      const fork = this.forkOf(call, ids, place, expected)
      if (fork !== null) forks.push(fork)
      if (place.at !== null) parent = { segmentId: place.at.segment.id, offset: place.at.offset }
      if (place.matched < ids.length) {
        const fresh = this.segment(call, 'prompt', ids.slice(place.matched), parent)
        segments.push(fresh)
        spans.push(promptSpan(call, fresh, place))
        parent = { segmentId: fresh.id, offset: fresh.tokens.length }
      }
    }
    // Without prompt ids nobody can say what the sampled ids stood behind; they start a path of their own.
    const promptLeaf = parent?.segmentId ?? null
    for (const choice of answer.choices) {
      // An empty generation is a segment without tokens; one whose ids the engine left out is none.
      if (choice.tokenIds.length === 0 && (parent === null || producedSomething(choice))) continue
      const sampled = this.sampled(call, choice, parent)
      segments.push(sampled)
      choiceSegments.set(choice.index, sampled.id)
      this.answers.set(`${call.callId}/${choice.index}`, { segment: sampled, facts: answerFacts(choice) })
      if (sampled.tokens.length > 0) {
        spans.push({
          segmentId: sampled.id,
          start: 0,
          end: sampled.tokens.length,
          role: 'assistant',
          part: 'content',
          sourceCallId: call.callId,
        })
      }
    }
    for (const segment of segments) this.tree.add(segment)
    return { segments, spans, promptLeaf, forks, choiceSegments, findings: findingsOf(call) }
  }

  /** The sampled segments that the conversation says the prompt continues. */
  private expected(call: AnsweredCall): Segment[] {
    return call.match.continues.flatMap(({ callId, choice }) => {
      const known = this.answers.get(`${callId}/${choice}`)
      return known === undefined || known.segment.tokens.length === 0 ? [] : [known.segment]
    })
  }

  /** The ledger entry where a prompt should have extended an earlier answer and did not; null where all is well. */
  private forkOf(call: AnsweredCall, ids: Int32Array, place: PromptPlace, expected: readonly Segment[]): Fork | null {
    const [segment, second] = expected
    if (segment === undefined || expected.some((one) => place.through.includes(one))) return null
    const path = this.tree.pathIds(segment)
    let position = 0
    while (position < path.length && position < ids.length && path[position] === ids[position]) position += 1
    const from = Math.max(0, position - ledgerWindow / 2)
    // A template may change an answer long before the one that is continued; the cause is in the one that changed.
    const at = this.tree.segmentAt(segment, position)
    const changed = at?.origin === 'sampled' ? at : segment
    return {
      cause: driftCause({
        answer: this.answers.get(`${changed.callId}/${changed.choice}`)?.facts ?? null,
        echoed: changed === segment ? call.messages[call.match.at] : null,
        edited: call.match.edited,
        ambiguous: place.ambiguous && second !== undefined,
        shorter: ids.length < path.length,
      }),
      fromCallId: segment.callId,
      position,
      expected: Array.from(path.subarray(from, from + ledgerWindow)),
      got: Array.from(ids.subarray(from, from + ledgerWindow)),
      tokensAffected: this.tree.sampledBehind(segment, position),
    }
  }

  private sampled(call: AnsweredCall, choice: ChoiceAnswer, parent: Segment['parent']): Segment {
    const { answer } = call
    const tokens = Int32Array.from(choice.tokenIds)
    const policy: PolicySpan = {
      start: 0,
      end: tokens.length,
      policy: {
        model: answer.model ?? call.model ?? 'unknown',
        adapter: null,
        weightVersion: answer.weightVersionLast,
      },
      mixing: answer.weightVersionFirst === answer.weightVersionLast ? 'none' : 'mixed',
    }
    return {
      ...this.segment(call, 'sampled', tokens, parent),
      choice: choice.index,
      ...alignedLogprobs(choice),
      logprobKind: call.logprobKind,
      policySpans: tokens.length === 0 ? [] : [policy],
    }
  }

  private segment(
    call: AnsweredCall,
    origin: Segment['origin'],
    tokens: Int32Array,
    parent: Segment['parent'],
  ): Segment {
    return {
      id: newId(),
      sessionId: this.sessionId,
      callId: call.callId,
      choice: null,
      parent,
      origin,
      tokens,
      logprobs: null,
      flags: null,
      logprobKind: 'unknown',
      policySpans: [],
      replayOf: null,
      stopCut: false,
    }
  }
}

const spanRoles = ['system', 'developer', 'user', 'assistant', 'tool'] as const

/**
 * Whose the new prompt tokens are: the role of the new messages where all have one, else unknown. Which of them are
 * content and which the template's scaffold only a tokenizer could tell, so that is unknown.
 */
function promptSpan(call: AnsweredCall, segment: Segment, place: PromptPlace): Span {
  const extended = place.through.length > 0 && !call.match.edited
  const fresh = extended ? call.messages.slice(call.match.at + 1) : call.messages
  const roles = new Set(
    fresh.map((message) =>
      typeof message === 'object' && message !== null && 'role' in message ? message.role : null,
    ),
  )
  const [only, second] = [...roles]
  const role = second === undefined ? spanRoles.find((name) => name === only) : undefined
  return {
    segmentId: segment.id,
    start: 0,
    end: segment.tokens.length,
    role: role ?? 'unknown',
    part: 'unknown',
    sourceCallId: call.callId,
  }
}
