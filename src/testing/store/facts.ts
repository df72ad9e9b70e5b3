/** Facts for store tests: whole records, every field that may vary a parameter. */
import { type Id, newId, type SamplingParams, sha256 } from '../../core/index.ts'
import type { CallCommit, CallIntent, Segment, SessionRecord } from '../../trajectory/index.ts'

const sampling: SamplingParams = {
  temperature: 0.7,
  topP: null,
  topK: null,
  minP: null,
  presencePenalty: null,
  frequencyPenalty: null,
  repetitionPenalty: null,
  maxTokens: 32_000,
  seed: null,
  stop: ['\n\n'],
  n: 1,
  other: [],
}

/** A session of the agent. */
export function sessionFact(more: Partial<SessionRecord> = {}): SessionRecord {
  return {
    id: newId(),
    rolloutId: null,
    role: 'agent',
    policy: {
      strategy: 'record',
      history: 'sampled',
      pin: { temperature: 0.7 },
      clamp: {},
      defaults: {},
      model: null,
      budget: { maxCalls: 10, maxSampledTokens: null, maxWallMs: null },
      onDisconnect: 'finish',
    },
    keyDigest: sha256('key'),
    forkedFrom: null,
    createdAt: 1_700_000_000_000,
    labels: { who: 'ä' },
    ...more,
  }
}

/** The intent of a chat call with this body. */
export function intentFact(sessionId: Id, seq: number, body: string, more: Partial<CallIntent> = {}): CallIntent {
  return {
    id: newId(),
    sessionId,
    seq,
    startedAt: 1_700_000_000_000 + seq,
    dialect: 'chat',
    path: '/v1/chat/completions',
    streamed: true,
    requestDigest: sha256(body),
    retryOf: null,
    lineage: {
      nativeSession: null,
      nativeAgent: null,
      nativeParent: null,
      requestKind: null,
      toolsDigest: sha256('tools'),
      toolCount: 14,
      systemDigest: sha256('system'),
      userAgent: 'harness/1.0',
      modelAsked: 'm',
      retryCount: 0,
      idempotencyKey: null,
    },
    callClass: 'main',
    strategy: 'record',
    asked: sampling,
    used: sampling,
    fingerprint: sha256('engine'),
    headers: {
      'content-length': String(body.length),
      'content-type': 'application/json',
      'user-agent': 'harness/1.0',
      'x-stainless-retry-count': '0',
    },
    body: Buffer.from(body),
    ...more,
  }
}

/** A prompt segment of a call. */
export function promptFact(intent: CallIntent, tokens: Int32Array, parent: Segment['parent'] = null): Segment {
  return {
    id: newId(),
    sessionId: intent.sessionId,
    callId: intent.id,
    choice: null,
    parent,
    origin: 'prompt',
    tokens,
    logprobs: null,
    flags: null,
    logprobKind: 'unknown',
    policySpans: [],
    replayOf: null,
    stopCut: false,
  }
}

/** A sampled segment of a call, by one policy. */
export function sampledFact(
  intent: CallIntent,
  tokens: Int32Array,
  logprobs: Float32Array | null,
  parent: Segment['parent'],
  more: Partial<Segment> = {},
): Segment {
  const policy = { model: 'm', adapter: null, weightVersion: '7' }
  return {
    ...promptFact(intent, tokens, parent),
    choice: 0,
    origin: 'sampled',
    logprobs,
    logprobKind: 'raw',
    policySpans: [{ start: 0, end: tokens.length, policy, mixing: 'none' }],
    ...more,
  }
}

/** The end of a call that went well; each sampled segment is a choice. */
export function commitFact(
  intent: CallIntent,
  segments: readonly Segment[],
  more: Partial<CallCommit> = {},
): CallCommit {
  const reply = Buffer.from(`data: {"id":"${intent.id}"}\n\ndata: [DONE]\n\n`)
  return {
    callId: intent.id,
    endedAt: intent.startedAt + 500,
    firstByteAt: intent.startedAt + 20,
    outcome: { kind: 'complete' },
    choices: segments
      .filter((segment) => segment.origin === 'sampled')
      .map((segment, index) => ({
        index,
        finishReason: 'stop',
        segmentId: segment.id,
        message: '{"role":"assistant","content":"a"}',
        claimedTokens: segment.tokens.length,
      })),
    segments,
    spans: segments.map((segment) => ({
      segmentId: segment.id,
      start: 0,
      end: segment.tokens.length,
      role: segment.origin === 'sampled' ? 'assistant' : 'user',
      part: 'content',
      sourceCallId: null,
    })),
    promptLeaf: segments.find((segment) => segment.origin === 'prompt')?.id ?? null,
    forks: [],
    claimedPromptTokens: null,
    findings: [],
    status: 200,
    reply,
    replyMarks: [
      { offset: 0, atMs: 20.5 },
      { offset: 60, atMs: 499.9 },
    ],
    weightVersionBefore: '7',
    weightVersionAfter: '7',
    ...more,
  }
}

/** `count` token ids from `from` on. */
export function ids(count: number, from = 0): Int32Array {
  return Int32Array.from({ length: count }, (_, place) => from + place)
}
