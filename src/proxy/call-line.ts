import { present } from '../core/index.ts'
import type { CallEvent } from './contract.ts'
import type { AdmittedCall, EndedCall } from './call-contract.ts'
import type { Answer } from './dialects/chat/answer.ts'
import { meanEntropyOf } from './side-channels.ts'

/** What is told of a call is cut from so many characters, to so many. */
const looked = 1000
const shown = 120

/** A settled call in a line, for whoever watches. */
export function callLine(
  { intent, session, topLogprobs }: AdmittedCall,
  outcome: Pick<EndedCall, 'commit' | 'promptTokens' | 'sampledTokens'> & { readonly answer: Answer },
): CallEvent {
  const { commit } = outcome
  // A call that could not be committed has no choices, whatever was sampled.
  const choices = commit.choices.length === 0 ? [] : outcome.answer.choices
  const text = choices.find(({ content }) => content !== null && content !== '')?.content ?? ''
  return {
    type: 'call',
    callId: intent.id,
    sessionId: session.record.id,
    rolloutId: session.record.rolloutId,
    ...present({ policy: session.record.policy.name }),
    seq: intent.seq,
    callClass: intent.callClass,
    strategy: intent.strategy,
    model: intent.lineage.modelAsked,
    streamed: intent.streamed,
    status: commit.status,
    outcome: commit.outcome,
    promptTokens: outcome.promptTokens,
    sampledTokens: outcome.sampledTokens,
    finishReasons: commit.choices.map((choice) => choice.finishReason),
    entropy: topLogprobs > 0 ? meanEntropyOf(choices) : null,
    toolCalls: choices.flatMap(({ toolCalls }) => toolCalls.filter(Boolean).map(({ name }) => name)),
    preview: previewOf(text),
    findings: commit.findings,
    forks: commit.forks.map((fork) => fork.cause),
    forkedTokens: commit.forks.map((fork) => fork.tokensAffected),
    durationMs: commit.endedAt - intent.startedAt,
    firstByteMs: commit.firstByteAt === null ? null : commit.firstByteAt - intent.startedAt,
  }
}

/** The beginning of a text in one line. */
export function previewOf(text: string): string {
  const start = text.slice(0, shown)
  return /[^\S ]| {2}/.test(start) ? text.slice(0, looked).replace(/\s+/g, ' ').slice(0, shown) : start
}
