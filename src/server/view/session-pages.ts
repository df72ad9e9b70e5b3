import { type Id, PaddockError } from '../../core/index.ts'
import { requestMessages } from '../../proxy/index.ts'
import type { CallRecord, Segment, SessionLog, SessionRecord, StoreReader } from '../../trajectory/index.ts'
import {
  commonPrefix,
  type ReadMessage,
  readMessage,
  rowsOf,
  type SegmentMask,
  segmentMasks,
  knownTokenTexts,
  type TokenTexts,
  type TokenCounts,
  tokenCounts,
} from '../../read/index.ts'
import type { CallDetail, CallLine, CallsPage, MessageView, SessionDetail, TokensHead } from './contract.ts'

/** Characters of a text that a page gets; the rest is counted. */
const maxTextChars = 64_000
/** Messages of one call that a page gets, the newest. */
const maxMessages = 50
const previewChars = 160
/** Forks of one call that a list tells. */
const mostForks = 4

/** A session without bodies, with what its pages are made of. */
export interface ReadSession {
  readonly log: SessionLog
  readonly masks: ReadonlyMap<Id, SegmentMask>
  readonly counts: ReadonlyMap<Id, TokenCounts>
  readonly segments: ReadonlyMap<Id, Segment>
  readonly texts: TokenTexts
}

/** Reads a session for its pages. Throws `NOT_FOUND`, `STORE_CORRUPT`. */
export async function readSession(reader: StoreReader, id: Id): Promise<ReadSession> {
  const log = await reader.recorder.session(id, { bodies: [] })
  const { rolloutId } = log.session
  const rollout = rolloutId === null ? null : await reader.catalogue.rollout(rolloutId)
  return {
    log,
    masks: segmentMasks(log, rowsOf(log, rollout)),
    counts: tokenCounts(log),
    segments: new Map(log.segments.map((segment) => [segment.id, segment])),
    texts: await knownTokenTexts(reader, log),
  }
}

/** Which of several policies a session belongs to. */
export function shownPolicy({ policy: { name, trained } }: SessionRecord): Pick<SessionDetail, 'policy'> {
  return name === undefined ? {} : { policy: { name, trained: trained !== false } }
}

/** The page of a session. */
export function sessionDetail(session: ReadSession): SessionDetail {
  const { log } = session
  return {
    id: log.session.id,
    role: log.session.role,
    ...shownPolicy(log.session),
    rolloutId: log.session.rolloutId,
    closedAt: log.closedAt,
    labels: log.session.labels,
    calls: log.calls.length,
  }
}

/** A part of a session's calls, and where the call of a number stands. */
export function callsPartOf(
  session: ReadSession,
  asked: { readonly after: number; readonly limit: number },
  seq: number | null,
): CallsPage {
  const { calls } = session.log
  const rows = calls.slice(asked.after, asked.after + asked.limit).map((call) => callLine(session, call))
  const next = asked.after + rows.length
  const at = Math.max(
    0,
    calls.findIndex(({ intent }) => intent.seq === seq),
  )
  return { total: calls.length, rows, next: next < calls.length ? next : null, at }
}

/** A call as lists have it. */
export function callLine({ counts, masks, segments }: ReadSession, call: CallRecord): CallLine {
  const { intent, commit } = call
  const count = counts.get(intent.id)
  const own = (commit?.choices ?? []).flatMap(({ segmentId }) => (segmentId === null ? [] : [segmentId]))
  const [choice] = commit?.choices ?? []
  return {
    seq: intent.seq,
    id: intent.id,
    class: intent.callClass,
    strategy: intent.strategy,
    startedAt: intent.startedAt,
    endedAt: commit?.endedAt ?? null,
    outcome: outcomeOf(call),
    delivery: call.superseded ? 'superseded' : call.delivery,
    promptTokens: count?.prompt ?? null,
    promptNew: count?.promptNew ?? 0,
    sampledTokens: count?.sampled ?? null,
    replayedTokens: count?.replayed ?? 0,
    trained: own
      .filter((id) => masks.get(id)?.trained === true)
      .reduce((total, id) => total + (segments.get(id)?.tokens.length ?? 0), 0),
    findings: commit?.findings.length ?? 0,
    forks: (commit?.forks ?? [])
      .slice(0, mostForks)
      .map(({ cause, position, tokensAffected }) => ({ cause, position, tokensAffected })),
    preview: choice === undefined ? '' : previewOf(readMessage(parsedMessage(choice.message))),
  }
}

/** One call whole, with the messages that are new in its request. Throws `NOT_FOUND`. */
export async function callDetail(reader: StoreReader, session: ReadSession, seq: number): Promise<CallDetail> {
  const call = callOf(session, seq)
  const earlier = session.log.calls.filter(
    ({ intent }) => intent.seq < seq && intent.callClass === call.intent.callClass,
  )
  const before = earlier.at(-1)
  const wanted = [call.intent.id, ...(before === undefined ? [] : [before.intent.id])]
  const { calls } = await reader.recorder.session(session.log.session.id, { bodies: wanted })
  const messages = messagesOf(calls, call.intent.id)
  const shown = before === undefined ? 0 : shownBefore(messages, messagesOf(calls, before.intent.id))
  const { intent, commit } = call
  const outcome = commit?.outcome
  return {
    ...callLine(session, call),
    dialect: intent.dialect,
    streamed: intent.streamed,
    asked: intent.asked,
    used: intent.used,
    weightVersion: { before: commit?.weightVersionBefore ?? null, after: commit?.weightVersionAfter ?? null },
    messages: messages
      .slice(shown)
      .slice(-maxMessages)
      .map((message) => messageView(readMessage(message))),
    choices: (commit?.choices ?? []).map((choice) => ({
      index: choice.index,
      finishReason: choice.finishReason,
      message: messageView(readMessage(parsedMessage(choice.message))),
      sampledTokens: choice.segmentId === null ? null : (session.segments.get(choice.segmentId)?.tokens.length ?? null),
    })),
    error:
      outcome?.kind === 'engine_error' || outcome?.kind === 'refused' ? `${outcome.code}: ${outcome.message}` : null,
    findingsInFull: commit?.findings ?? [],
    forksInFull: (commit?.forks ?? []).map((fork) => ({
      cause: fork.cause,
      fromCallSeq: session.log.calls.find((one) => one.intent.id === fork.fromCallId)?.intent.seq ?? null,
      position: fork.position,
      expected: joined(fork.expected, session.texts),
      got: joined(fork.got, session.texts),
    })),
  }
}

/** Tokens `[from, to)` of a choice's sampled segment, as the bytes of {@link TokensHead}. Throws `NOT_FOUND`. */
export function tokensOf(session: ReadSession, seq: number, choice: number, from: number, to: number): Buffer {
  const found = callOf(session, seq).commit?.choices.find(({ index }) => index === choice)
  const segment = found?.segmentId == null ? undefined : session.segments.get(found.segmentId)
  if (segment === undefined)
    throw new PaddockError('NOT_FOUND', `call ${seq} has no sampled tokens for choice ${choice}`)
  const tokens = segment.tokens.slice(from, to)
  const mask = session.masks.get(segment.id) ?? { trained: false, reason: null }
  const head: TokensHead = {
    choice,
    from,
    n: tokens.length,
    total: segment.tokens.length,
    logprobKind: segment.logprobKind,
    trained: mask.trained,
    maskReason: mask.reason,
    texts: Object.fromEntries(
      [...new Set(tokens)].flatMap((id) => (session.texts.has(id) ? [[id, tokenOf(id, session.texts)]] : [])),
    ),
  }
  const logprobs = segment.logprobs?.slice(from, to) ?? new Float32Array(tokens.length).fill(Number.NaN)
  const trained = new Uint8Array(tokens.length).fill(mask.trained ? 1 : 0)
  const json = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(json.length)
  return Buffer.concat([length, json, bytesOf(tokens), bytesOf(logprobs), trained])
}

function bytesOf(array: Int32Array | Float32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

function callOf({ log }: ReadSession, seq: number): CallRecord {
  const call = log.calls.find(({ intent }) => intent.seq === seq)
  if (call === undefined) throw new PaddockError('NOT_FOUND', `session ${log.session.id} has no call ${seq}`)
  return call
}

function messagesOf(calls: readonly CallRecord[], id: Id): readonly unknown[] {
  const call = calls.find(({ intent }) => intent.id === id)
  return call === undefined ? [] : requestMessages(call.intent)
}

/** How many messages the call before had already, its echoed answer included. */
function shownBefore(messages: readonly unknown[], before: readonly unknown[]): number {
  const common = commonPrefix(messages, before)
  const echoes =
    common === before.length && messages.length > common && readMessage(messages[common]).role === 'assistant'
  return echoes ? common + 1 : common
}

function messageView(message: ReadMessage): MessageView {
  return {
    role: message.role,
    text: message.text.slice(0, maxTextChars),
    reasoning: message.reasoning?.slice(0, maxTextChars) ?? null,
    toolCalls: message.toolCalls.slice(0, 100).map(({ name, argumentsText }) => ({
      name,
      argumentsText: argumentsText.slice(0, maxTextChars),
    })),
    toolCallId: message.toolCallId,
    cut: Math.max(0, message.text.length - maxTextChars),
  }
}

function previewOf({ text, toolCalls, reasoning }: ReadMessage): string {
  const [tool] = toolCalls
  const said = text.trim() !== '' ? text : tool === undefined ? (reasoning ?? '') : `${tool.name} ${tool.argumentsText}`
  return said.trim().replaceAll(/\s+/g, ' ').slice(0, previewChars)
}

function outcomeOf({ commit }: CallRecord): string {
  if (commit === null) return 'in flight'
  const { outcome } = commit
  if (outcome.kind === 'complete')
    return commit.choices.map(({ finishReason }) => finishReason ?? 'complete').join(', ')
  return 'code' in outcome ? outcome.code : outcome.kind
}

function joined(ids: readonly number[], texts: TokenTexts): string {
  return ids.map((id) => tokenOf(id, texts)).join('')
}

/** A token's text; bytes that are no whole character, and ids without a text, are shown as such. */
function tokenOf(id: number, texts: TokenTexts): string {
  const bytes = texts.get(id)
  if (bytes === undefined) return `⟨${id}⟩`
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return [...bytes].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
  }
}

/** A message as the store has it; what is no JSON stands for itself. */
export function parsedMessage(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return { role: 'assistant', content: text }
  }
}
