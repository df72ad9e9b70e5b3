import { setImmediate } from 'node:timers/promises'
import { isBeside, isWork } from '../../core/index.ts'
import { callFaultsOf, type CallRecord, type Segment, type SessionLog, wireFaultOf } from '../../trajectory/index.ts'
import { isAnswered } from '../is-answered.ts'
import { turnDigest } from '../dialects/chat/turns.ts'
import type { DialectRequest } from '../dialects/contract.ts'
import { dialectNamed } from '../dialects/registry.ts'
import { recordedThreadTurn } from '../dialects/messages/recorded-turn.ts'
import { messageId } from '../dialects/messages/threads.ts'
import { shelvedTurn } from '../dialects/responses/stored-turn.ts'
import { engineBody } from '../engine-body.ts'
import type { LiveSession } from '../session/live-session.ts'
import { lostCall } from '../session/remembered-call.ts'
import { StoredAnswer } from './stored-answer.ts'

/**
 * Brings a session to where an earlier process left it, from its log: conversation, token tree, stored responses, the
 * calls that may be asked for again, budgets. What was read of each request then is read again from its bytes, a call in
 * each turn of the event loop: a long session has many megabytes of them.
 */
export async function takeUp(
  session: LiveSession,
  log: SessionLog,
  delivered: (call: StoredAnswer) => void,
): Promise<void> {
  const segments = Map.groupBy(log.segments, (segment) => segment.callId)
  for (const call of log.calls) {
    await setImmediate()
    const asked = readAgain(session, call)
    if (!isBeside(call.intent.callClass)) {
      session.rememberClass(call.intent)
      if (asked !== null) takeUpTurn(session, call, { asked, segments: segments.get(call.intent.id) ?? [] })
    }
    if (asked === null) continue
    const stored: StoredAnswer = new StoredAnswer(call, asked, () => delivered(stored))
    session.rememberPast(stored, call.intent.requestDigest, call.intent.lineage.idempotencyKey)
  }
  const known = new Set(log.calls.map(({ intent }) => intent.id))
  const repeated = new Set(log.calls.map(({ intent }) => intent.retryOf))
  for (const event of log.events) {
    if (event.kind === 'taint' && event.callId !== null && event.request !== undefined && !known.has(event.callId))
      session.rememberPast(lostCall(event.callId, repeated.has(event.callId)), event.request, null)
    if (event.kind === 'response_deleted') session.responses.delete(event.responseId)
  }
  session.takeUpFigures(figuresOf(log, segments))
}

/** What a call was to the conversation. */
export function takeUpTurn(
  session: LiveSession,
  call: CallRecord,
  { asked, segments }: { readonly asked: DialectRequest; readonly segments: readonly Segment[] },
): void {
  const { commit, intent } = call
  takeUpTokens(session, call, { asked, segments })
  // What streams lack is found out again by the first one.
  if (commit !== null && segments.length > 0) session.trust.note(wireFaultOf(commit.findings), null, intent.streamed)
  if (commit !== null && isAnswered(commit.outcome)) takeUpAnswers(session, call, asked)
}

/** Null for a request that was recorded and cannot be read any more: nothing continues it. */
function readAgain(session: LiveSession, { intent }: CallRecord): DialectRequest | null {
  try {
    return dialectNamed(intent.dialect).read({
      bytes: Buffer.from(intent.body),
      headers: intent.headers,
      path: intent.path,
      now: intent.startedAt,
      memory: session,
    })
  } catch {
    return null
  }
}

function takeUpTokens(
  session: LiveSession,
  { intent, commit }: CallRecord,
  { asked, segments }: { readonly asked: DialectRequest; readonly segments: readonly Segment[] },
): void {
  const { model } = session.record.policy
  const put = session.injector?.into(asked.chat, { callClass: intent.callClass, match: null })?.put ?? null
  session.tokens.takeUp({
    callId: intent.id,
    segments,
    choices: commit?.choices ?? [],
    findings: commit?.findings ?? [],
    messages: put?.messages ?? asked.chat.messages,
    body: engineBody(asked.chat, {
      set: {
        ...(model === null ? {} : { model: JSON.stringify(model) }),
        ...(put === null ? {} : { messages: put.text }),
      },
      remove: [],
      buffered: false,
    }),
  })
}

function takeUpAnswers(session: LiveSession, call: CallRecord, { chat, handles }: DialectRequest): void {
  session.conversation.read(chat.turns, handles)
  for (const { index, message } of call.commit?.choices ?? []) {
    const read: unknown = JSON.parse(message)
    if (isObject(read)) {
      if ('reasoning_content' in read) session.reasoningName = 'reasoning_content'
      else if ('reasoning' in read) session.reasoningName = 'reasoning'
    }
    const answer = { callId: call.intent.id, choice: index }
    session.conversation.note(answer, chat.turns.whole, {
      turn: turnDigest(read),
      content: contentOf(read),
      toolCallIds: toolCallIds(read),
    })
  }
  if (call.delivery !== 'unknown') session.conversation.noteSent(call.intent.id)
  const shelved = shelvedTurn(call, session)
  if (shelved !== null) session.responses.put(shelved.id, shelved.turn)
  const turn = recordedThreadTurn(call, session)
  if (turn !== null) session.threads.put(messageId(call.intent.id), turn)
}

function contentOf(message: unknown): string | null {
  return isObject(message) && 'content' in message && typeof message.content === 'string' ? message.content : null
}

function toolCallIds(message: unknown): readonly string[] {
  if (!isObject(message) || !('tool_calls' in message) || !Array.isArray(message.tool_calls)) return []
  return message.tool_calls.flatMap((call: unknown) =>
    isObject(call) && 'id' in call && typeof call.id === 'string' && call.id !== '' ? [call.id] : [],
  )
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function figuresOf(
  log: SessionLog,
  segments: ReadonlyMap<string | null, readonly Segment[]>,
): Parameters<LiveSession['takeUpFigures']>[0] {
  let [nextSeq, calls, spared, answered, sampledTokens, waitedMs, until] = [0, 0, 0, 0, 0, 0, 0]
  const faulted = new Set(log.events.map((event) => (event.kind === 'taint' ? event.callId : null)))
  for (const { intent, commit } of log.calls) {
    nextSeq = Math.max(nextSeq, intent.seq + 1)
    // A refused call was never begun.
    if (commit === null || commit.outcome.kind === 'refused') continue
    calls += 1
    if (commit.outcome.kind === 'interrupted' || faulted.has(intent.id)) spared += 1
    if (isAnswered(commit.outcome) && isWork(intent.callClass)) answered += 1
    const ids = (segments.get(intent.id) ?? []).reduce(
      (sum, { origin, tokens }) => sum + (origin === 'sampled' ? tokens.length : 0),
      0,
    )
    const claimed = commit.choices.reduce((sum, { claimedTokens }) => sum + (claimedTokens ?? 0), 0)
    sampledTokens += Math.max(ids, claimed)
    // The end of a call that was cut off is the time at which it was found, not the time that it took.
    if (commit.outcome.kind === 'interrupted') continue
    waitedMs += Math.max(0, commit.endedAt - Math.max(intent.startedAt, until))
    until = Math.max(until, commit.endedAt)
  }
  const outcome = log.calls.at(-1)?.commit?.outcome
  return {
    nextSeq,
    calls,
    spared,
    answered,
    sampledTokens,
    waitedMs,
    faults: callFaultsOf(log),
    lastError: outcome?.kind === 'engine_error' || outcome?.kind === 'refused' ? outcome.code : null,
  }
}
