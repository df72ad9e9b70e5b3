import { newId, sha256 } from '../../core/index.ts'
import type { CallCommit, CallIntent, Segment, SessionPolicy, SessionRecord, Span } from '../../trajectory/index.ts'

/** A policy with nothing set. */
export const plainPolicy: SessionPolicy = {
  strategy: 'record',
  history: 'sampled',
  pin: {},
  clamp: {},
  defaults: {},
  model: null,
  budget: { maxCalls: null, maxSampledTokens: null, maxWallMs: null },
  onDisconnect: 'finish',
}

const sampling = {
  temperature: 0.7,
  topP: null,
  topK: null,
  minP: null,
  presencePenalty: null,
  frequencyPenalty: null,
  repetitionPenalty: null,
  maxTokens: 512,
  seed: null,
  stop: ['</done>'],
  n: 1,
  other: ['grammar'],
}

/** A session record of a generated store. */
export function sampleSession(over: Partial<SessionRecord> = {}): SessionRecord {
  return {
    id: newId(),
    rolloutId: null,
    role: 'agent',
    policy: plainPolicy,
    keyDigest: sha256('a key'),
    forkedFrom: null,
    createdAt: 1_760_000_000_000,
    labels: { harness: 'script' },
    ...over,
  }
}

/** The body of call `seq` of a conversation that only grows: what most harnesses send. */
export function growingBody(seq: number, turnBytes = 400): Uint8Array {
  const messages = Array.from({ length: seq * 2 + 1 }, (_, n) => ({
    role: n % 2 === 0 ? 'user' : 'assistant',
    content: `turn ${n} ${'words of this turn '.repeat(Math.ceil(turnBytes / 19))}`,
  }))
  return Buffer.from(JSON.stringify({ model: 'm', messages, temperature: 1.0 }))
}

/** An intent of a generated store. */
export function sampleIntent(sessionId: string, seq: number, over: Partial<CallIntent> = {}): CallIntent {
  return {
    id: newId(),
    sessionId,
    seq,
    startedAt: 1_760_000_000_000 + seq,
    dialect: 'chat',
    path: '/v1/chat/completions',
    streamed: seq % 2 === 0,
    requestDigest: sha256(`${sessionId} ${seq}`),
    retryOf: null,
    lineage: {
      nativeSession: null,
      nativeAgent: null,
      nativeParent: null,
      requestKind: null,
      toolsDigest: sha256('tools'),
      toolCount: 3,
      systemDigest: null,
      userAgent: 'ä client/1.0',
      modelAsked: 'm',
      retryCount: 0,
      idempotencyKey: null,
    },
    callClass: 'main',
    strategy: 'record',
    asked: sampling,
    used: { ...sampling, temperature: 1 },
    fingerprint: sha256('engine'),
    headers: { 'user-agent': 'ä client/1.0' },
    body: growingBody(seq),
    ...over,
  }
}

/** Token ids that look like text: repeating, below 152,000. */
export function sampleTokens(length: number, salt: number): Int32Array {
  return Int32Array.from({ length }, (_, n) => ((n * 2_654_435_761 + salt * 40_503) >>> 9) % 151_936)
}

/** A segment of a generated store. */
export function sampleSegment(
  intent: CallIntent,
  origin: Segment['origin'],
  parent: Segment['parent'],
  length: number,
  over: Partial<Segment> = {},
): Segment {
  const sampled = origin === 'sampled'
  return {
    id: newId(),
    sessionId: intent.sessionId,
    callId: intent.id,
    choice: sampled ? 0 : null,
    parent,
    origin,
    tokens: sampleTokens(length, intent.seq),
    logprobs: sampled ? Float32Array.from({ length }, (_, n) => -Math.abs(Math.sin(n + intent.seq)) * 4) : null,
    flags: null,
    logprobKind: sampled ? 'raw' : 'unknown',
    policySpans:
      sampled && length > 0
        ? [{ start: 0, end: length, policy: { model: 'm', adapter: null, weightVersion: '7' }, mixing: 'none' }]
        : [],
    replayOf: null,
    stopCut: false,
    ...over,
  }
}

/** The commit of an answered call. */
export function sampleCommit(
  intent: CallIntent,
  segments: readonly Segment[],
  over: Partial<CallCommit> = {},
): CallCommit {
  const answers = segments.filter((segment) => segment.origin === 'sampled' && !segment.stopCut)
  const spans: Span[] = segments
    .filter((segment) => segment.tokens.length > 0)
    .map((segment) => ({
      segmentId: segment.id,
      start: 0,
      end: segment.tokens.length,
      role: segment.origin === 'sampled' ? 'assistant' : 'user',
      part: 'content',
      sourceCallId: intent.id,
    }))
  return {
    callId: intent.id,
    endedAt: intent.startedAt + 900,
    firstByteAt: intent.startedAt + 40,
    fate: { kind: 'complete' },
    choices: answers.map((segment, index) => ({
      index,
      finishReason: 'stop',
      segmentId: segment.id,
      message: JSON.stringify({ role: 'assistant', content: `answer ${intent.seq}` }),
      claimedTokens: segment.tokens.length,
    })),
    segments,
    spans,
    promptLeaf: segments.find((segment) => segment.origin === 'prompt')?.id ?? null,
    forks: [],
    claimedPromptTokens: 10,
    findings: [],
    status: 200,
    reply: Buffer.from(`data: {"answer":${intent.seq}}\n\ndata: [DONE]\n\n`),
    replyMarks: [
      { offset: 0, atMs: 40 },
      { offset: 20, atMs: 900 },
    ],
    weightVersionBefore: '7',
    weightVersionAfter: '7',
    ...over,
  }
}
