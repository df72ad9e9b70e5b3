/** A real store with rollouts as a proxy would have recorded them: two append-only calls each. */
import {
  type PolicySpan,
  type EngineFingerprint,
  type LogprobKind,
  newId,
  type RolloutEnd,
  sha256,
  type Verdict,
} from '../../core/index.ts'
import type { CallCommit, CallIntent, Segment, SessionPolicy, Store } from '../../trajectory/index.ts'

/** What is different about one rollout; the rest is sound. */
export interface RecordedRollout {
  /** A number, or the status of a verdict without one, or no verdict. */
  readonly reward?: number | 'infra_error' | 'unscorable' | null
  /** Null: it has not ended. */
  readonly end?: RolloutEnd | null
  readonly taint?: string
  readonly verifierVersion?: string
  readonly verifierSha256?: string
  readonly tokenizer?: string
  readonly logprobKind?: LogprobKind
  /** Rollouts of one name are one group. */
  readonly group?: string
  readonly weightVersion?: string
  readonly mixing?: PolicySpan['mixing']
}

/** Sampled tokens of each rollout: two calls of three. */
export const sampledPerRollout = 6

/** Puts rollouts into a store and returns their ids. */
export async function recordRollouts(store: Store, rollouts: readonly RecordedRollout[]): Promise<readonly string[]> {
  const run = { id: newId(), name: 'recorded', createdAt: 1, config: {} }
  const task = {
    digest: sha256('recorded task'),
    name: 'recorded',
    environment: 'terminal',
    instruction: 'Count.',
    split: 'train',
    data: {},
    source: 'test',
  }
  await store.catalogue.putTask(task)
  await store.catalogue.putRun(run)
  const groups = new Map<string, string>()
  const ids: string[] = []
  for (const [slot, rollout] of rollouts.entries()) {
    const name = rollout.group ?? 'one'
    let groupId = groups.get(name)
    if (groupId === undefined) {
      groupId = newId()
      groups.set(name, groupId)
      await store.catalogue.putGroup({
        id: groupId,
        runId: run.id,
        taskDigest: task.digest,
        promptVariant: name,
        createdAt: 1,
      })
    }
    const id = newId()
    ids.push(id)
    await store.catalogue.putRollout({ id, runId: run.id, groupId, slot, attempt: 0, harness: 'script', createdAt: 1 })
    await store.catalogue.startRollout(id, 2)
    await recordSession(store, id, rollout)
    if (rollout.end !== null) await store.catalogue.endRollout(id, 3, rollout.end ?? 'completed', '')
    if (rollout.taint !== undefined) await store.catalogue.taint(id, rollout.taint)
    if (rollout.reward !== null) await store.catalogue.appendVerdict(verdictOf(id, rollout))
  }
  return ids
}

async function recordSession(
  { recorder, catalogue }: Store,
  rolloutId: string,
  rollout: RecordedRollout,
): Promise<void> {
  const sessionId = newId()
  const logprobKind = rollout.logprobKind ?? 'raw'
  const fingerprint: EngineFingerprint = {
    engine: 'vllm',
    version: '0.12.0',
    model: 'counter',
    tokenizer: rollout.tokenizer ?? 'counter-bpe',
    chatTemplate: null,
    parsers: null,
    logprobKind,
    speculative: null,
    quantisation: null,
  }
  const digest = await catalogue.putFingerprint(fingerprint)
  await recorder.openSession({
    id: sessionId,
    rolloutId,
    role: 'agent',
    policy,
    keyDigest: sha256('key'),
    forkedFrom: null,
    createdAt: 1,
    labels: {},
  })
  const messages: object[] = []
  let parent: Segment['parent'] = null
  for (const seq of [0, 1]) {
    messages.push({ role: 'user', content: `question ${seq}` })
    const callId = newId()
    await recorder.beginCall(intentOf({ callId, sessionId, seq, fingerprint: digest, messages }))
    const answer = { role: 'assistant', content: `answer ${seq}` }
    const segments = segmentsOf({
      callId,
      sessionId,
      seq,
      parent,
      logprobKind,
      version: rollout.weightVersion ?? '1',
      mixing: rollout.mixing ?? 'none',
    })
    const sampled = segments.at(-1)
    parent = sampled === undefined ? null : { segmentId: sampled.id, offset: sampled.tokens.length }
    await recorder.commitCall(commitOf(callId, segments, JSON.stringify(answer)))
    await recorder.settleDelivery(callId, 'sent')
    messages.push(answer)
  }
  await recorder.closeSession(sessionId, 3)
}

interface CallPlace {
  readonly callId: string
  readonly sessionId: string
  readonly seq: number
}

function segmentsOf(
  place: CallPlace & {
    readonly parent: Segment['parent']
    readonly logprobKind: LogprobKind
    readonly version: string
    readonly mixing: PolicySpan['mixing']
  },
): readonly Segment[] {
  const { callId, sessionId, seq, parent, logprobKind } = place
  const common = { sessionId, callId, flags: null, replayOf: null, stopCut: false }
  const promptId = newId()
  return [
    {
      ...common,
      id: promptId,
      choice: null,
      parent,
      origin: 'prompt',
      tokens: Int32Array.from([100 + seq, 200 + seq]),
      logprobs: null,
      logprobKind: 'unknown',
      policySpans: [],
    },
    {
      ...common,
      id: newId(),
      choice: 0,
      parent: { segmentId: promptId, offset: 2 },
      origin: 'sampled',
      tokens: Int32Array.from([1 + seq, 2 + seq, 3 + seq]),
      logprobs: Float32Array.from([-0.1, -0.2, -0.3]),
      logprobKind,
      policySpans: [
        {
          start: 0,
          end: 3,
          policy: { model: 'counter', adapter: null, weightVersion: place.version },
          mixing: place.mixing,
        },
      ],
    },
  ]
}

function intentOf(
  place: CallPlace & { readonly fingerprint: string; readonly messages: readonly object[] },
): CallIntent {
  const { messages, callId, ...rest } = place
  const params = {
    temperature: 1,
    topP: null,
    topK: null,
    minP: null,
    presencePenalty: null,
    frequencyPenalty: null,
    repetitionPenalty: null,
    maxTokens: null,
    seed: null,
    stop: [],
    n: 1,
    other: [],
  }
  const body = JSON.stringify({ model: 'counter', messages })
  return {
    ...rest,
    id: callId,
    startedAt: 2,
    dialect: 'chat',
    path: '/v1/chat/completions',
    streamed: false,
    requestDigest: sha256(body),
    retryOf: null,
    lineage: {
      nativeSession: null,
      nativeAgent: null,
      nativeParent: null,
      requestKind: null,
      toolsDigest: null,
      toolCount: 0,
      systemDigest: null,
      userAgent: null,
      modelAsked: 'counter',
      retryCount: null,
      idempotencyKey: null,
    },
    callClass: 'main',
    strategy: 'record',
    asked: params,
    used: params,
    headers: {},
    body: Buffer.from(body),
  }
}

function commitOf(callId: string, segments: readonly Segment[], message: string): CallCommit {
  return {
    callId,
    endedAt: 3,
    firstByteAt: 3,
    outcome: { kind: 'complete' },
    choices: [{ index: 0, finishReason: 'stop', segmentId: segments.at(-1)?.id ?? null, message, claimedTokens: 3 }],
    segments,
    spans: [],
    promptLeaf: segments[0]?.id ?? null,
    forks: [],
    claimedPromptTokens: null,
    findings: [],
    status: 200,
    reply: Buffer.from(message),
    replyMarks: [],
    weightVersionBefore: null,
    weightVersionAfter: null,
  }
}

const policy: SessionPolicy = {
  strategy: 'auto',
  history: 'template',
  pin: {},
  clamp: {},
  defaults: {},
  model: null,
  budget: { maxCalls: null, maxSampledTokens: null, maxWallMs: null },
  onDisconnect: 'finish',
}

function verdictOf(rolloutId: string, rollout: RecordedRollout): Verdict {
  const { reward = 1 } = rollout
  const facts = {
    id: newId(),
    rolloutId,
    at: 4,
    components: {},
    steps: [],
    evidence: '',
    artifacts: [],
    verifier: {
      id: 'counter',
      version: rollout.verifierVersion ?? '1',
      sha256: sha256(rollout.verifierSha256 ?? 'verifier'),
    },
    trust: 'separate' as const,
    costTokens: 0,
    supersedes: null,
  }
  if (typeof reward === 'number') return { ...facts, status: 'scored', reward }
  return { ...facts, status: reward ?? 'pending', reward: null, reason: 'made so' }
}
