import { type Clock, type Id, newId } from '../../core/index.ts'
import type { CallCommit, CallIntent, CallRecord, Recorder } from '../../trajectory/index.ts'
import { emptyCommit } from '../commit.ts'
import { messageId } from '../dialects/messages/threads.ts'
import { responseId } from '../dialects/responses/output.ts'
import type { DialectRequest } from '../dialects/contract.ts'
import type { LiveSession } from '../session/live-session.ts'
import type { Recorded, Replay } from './replay.ts'
import type { ReplayedTokens } from './replayed-segments.ts'
import { StoredAnswer } from './stored-answer.ts'
import { takeUpTurn } from './take-up.ts'

/**
 * Records that a child's request was answered as its parent's was, and takes the call up as if an earlier process had left it:
 * conversation, tokens, handles and stored responses stand where they stood. Resolves once that is durable, with the answer.
 */
export async function replayCall(
  session: LiveSession,
  {
    replay,
    intent,
    recorded,
    asked,
  }: {
    readonly replay: Replay
    readonly intent: CallIntent
    readonly recorded: Recorded
    readonly asked: DialectRequest
  },
  {
    recorder,
    clock,
    delivered,
  }: {
    readonly recorder: Pick<Recorder, 'beginCall' | 'commitCall' | 'appendEvent'>
    readonly clock: Clock
    readonly delivered: (callId: Id) => void
  },
): Promise<{ readonly answer: StoredAnswer; readonly commit: CallCommit }> {
  const { id: callId } = intent
  const of = replay.originalOf(recorded.intent.id)
  const commit = commitAgain(recorded.commit, { callId, at: clock.now(), tokens: replay.tokensOf(recorded, callId) })
  const about = { id: newId(), at: clock.now(), rolloutId: session.record.rolloutId, sessionId: session.record.id }
  await recorder.beginCall(intent)
  await recorder.appendEvent({ ...about, kind: 'replay', phase: 'answered', callId, of, detail: '' })
  const injected = replay.injectedInto(recorded)
  if (injected !== null) {
    const { kind, labels, edits, detail } = injected
    await recorder.appendEvent({ ...about, id: newId(), kind, callId, labels, edits, detail })
  }
  await recorder.commitCall(commit)
  const call: CallRecord = { intent, commit, delivery: 'unknown', superseded: false }
  const { findings } = recorded.commit
  takeUpTurn(session, { ...call, commit: { ...commit, findings } }, { asked, segments: commit.segments })
  session.handles.standsFor(of, callId)
  const stored = session.responses.get(responseId({ callId }))
  if (stored !== null) session.responses.put(responseId({ callId: of }), stored)
  const turn = session.threads.get(messageId(callId))
  if (turn !== null) session.threads.put(messageId(of), turn)
  const answer: StoredAnswer = new StoredAnswer(call, asked, () => delivered(callId))
  const sampledTokens = commit.choices.reduce((sum, { segmentId }) => {
    return sum + (commit.segments.find(({ id }) => id === segmentId)?.tokens.length ?? 0)
  }, 0)
  session.tookReplayed(answer, { digest: intent.requestDigest, key: intent.lineage.idempotencyKey, sampledTokens })
  return { answer, commit }
}

/** What was found of the answer, and what the engine claimed for it, is the parent's and told there. */
function commitAgain(
  { reply, choices }: Pick<CallCommit, 'reply' | 'choices'>,
  { callId, at, tokens }: { readonly callId: Id; readonly at: number; readonly tokens: ReplayedTokens },
): CallCommit {
  return {
    ...emptyCommit(callId, at),
    firstByteAt: at,
    outcome: { kind: 'complete' },
    status: 200,
    reply,
    choices: choices.map(({ index, finishReason, message }) => {
      return { index, finishReason, message, segmentId: tokens.answers.get(index) ?? null, claimedTokens: null }
    }),
    segments: tokens.segments,
    spans: tokens.spans,
    promptLeaf: tokens.promptLeaf,
  }
}
