import type { Id } from '../core/index.ts'
import type { CallCommit, CallOutcome, ReplyMark } from '../trajectory/index.ts'
import { type Answer, messageOf } from './dialects/chat/answer.ts'
import type { EngineAdapter } from './engines/contract.ts'
import { differenceOf, type KnownFacts } from './engines/facts.ts'
import type { AdmittedCall, CallSurroundings } from './call-contract.ts'

/** A call that has ended, with everything that its commit says. */
export interface EndedCall {
  readonly call: AdmittedCall
  readonly answer: Answer
  readonly engine: EngineAdapter
  readonly endedAt: number
  readonly firstByteAt: number | null
  readonly outcome: CallOutcome
  readonly status: number | null
  readonly reply: Buffer
  readonly replyMarks: readonly ReplyMark[]
}

/** Stores what the engine gave beside the answer; null where there is nothing. Rejects as the store does. */
export function storeBeside(
  { call, answer }: EndedCall,
  { keepBeside }: Pick<CallSurroundings<never>, 'keepBeside'>,
): Promise<void> | null {
  const { session, topLogprobs, intent } = call
  return keepBeside(answer, { callId: intent.id, session: session.record, topLogprobs })
}

/** Hangs the answer's tokens on the session's tree and gives the transaction that stores all of it. */
export function commitOf(ended: EndedCall): CallCommit {
  const { call, answer, engine, outcome } = ended
  const { session, request, match, intent } = call
  const served = answer.servedBy ?? call.facts
  const changed = isChanged(call.facts, served)
  const tokens = call.tokens.add({
    callId: intent.id,
    sessionId: session.record.id,
    answer,
    whole: outcome.kind === 'complete' || (outcome.kind === 'client_gone' && outcome.upstream === 'finished'),
    match,
    messages: call.injected?.put?.messages ?? request.messages,
    forked: call.injected?.removed === true ? 'injected_removed' : null,
    // Of the engine that answered: the one that the intent names may be gone.
    logprobKind: served?.fingerprint.logprobKind ?? engine.logprobKind,
    gives: engine.gives,
    n: intent.used.n,
    stops: intent.used.stop,
    vocabulary: served?.vocabulary ?? null,
    engineChanged: changed,
    model: intent.lineage.modelAsked,
  })
  return {
    callId: intent.id,
    endedAt: ended.endedAt,
    firstByteAt: ended.firstByteAt,
    outcome,
    choices: answer.choices.map((choice, place) => ({
      index: choice.index,
      finishReason: choice.finishReason,
      segmentId: sampledSegment(tokens.segments, choice.index),
      message: choice.rawMessage ?? JSON.stringify(messageOf(choice)),
      claimedTokens: claimedBy(answer, place),
    })),
    segments: tokens.segments,
    spans: tokens.spans,
    promptLeaf: tokens.promptLeaf,
    forks: tokens.forks,
    claimedPromptTokens: answer.claimed('prompt_tokens'),
    findings: tokens.findings,
    status: ended.status,
    reply: ended.reply,
    replyMarks: ended.replyMarks,
    weightVersionBefore: answer.weightVersionFirst,
    weightVersionAfter: answer.weightVersionLast,
  }
}

function isChanged(asked: KnownFacts | null, served: KnownFacts | null): boolean {
  // Nearly always one object.
  return asked !== null && served !== null && asked !== served && differenceOf(asked, served) !== null
}

/** With several choices the usage is their sum; whose tokens are whose only the ids say. */
function claimedBy(answer: Answer, place: number): number | null {
  const claimed = answer.claimed('completion_tokens')
  if (claimed === null || answer.choices.length === 1) return claimed
  const own = answer.choices[place]?.tokenIds.length ?? 0
  if (place > 0) return own
  const all = answer.choices.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0)
  return Math.max(0, own + claimed - all)
}

/** The segment of what a choice shows; null where it has none. */
function sampledSegment(segments: CallCommit['segments'], choice: number): Id | null {
  for (const segment of segments) if (segment.choice === choice && !segment.stopCut) return segment.id
  return null
}

/** The commit of a call that brought nothing. */
export function emptyCommit(callId: Id, endedAt: number): Omit<CallCommit, 'outcome'> {
  return {
    callId,
    endedAt,
    firstByteAt: null,
    choices: [],
    segments: [],
    spans: [],
    promptLeaf: null,
    forks: [],
    claimedPromptTokens: null,
    findings: [],
    status: null,
    reply: Buffer.alloc(0),
    replyMarks: [],
    weightVersionBefore: null,
    weightVersionAfter: null,
  }
}
