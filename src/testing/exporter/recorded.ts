/** A real store with rollouts as a proxy would have recorded them: two append-only calls each. */
import {
  type PolicySpan,
  type EngineFingerprint,
  type LogprobKind,
  newId,
  type RolloutEnd,
  sha256,
  type Trust,
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
  /** Default `separate`. */
  readonly trust?: Trust
  readonly verifierSha256?: string
  readonly tokenizer?: string
  readonly logprobKind?: LogprobKind
  /** Rollouts of one name are one group. */
  readonly group?: string
  readonly weightVersion?: string
  readonly mixing?: PolicySpan['mixing']
  /** Calls of its session, each going on from the one before. Default 2. */
  readonly turns?: number
  /** What the call of this number asks. */
  readonly question?: (seq: number) => string
  /** Its group is of this task, whose prompts have ids of their own. */
  readonly task?: string
  /** True: a third call goes on from the first one's answer, so that there are two rows. */
  readonly branch?: boolean
  /** `none`: no answer has logprobs; `gap`: the second token of the first answer has none. */
  readonly logprobs?: 'none' | 'gap'
  /** Its questions show a picture. */
  readonly image?: boolean
  /** Name of the policy that its session is of; absent: there is one. */
  readonly policy?: string
}

/** Sampled tokens of each rollout: two calls of three. One that branches has three more. */
export const sampledPerRollout = 6

/** Puts rollouts into a store and returns their ids. */
export async function recordRollouts(store: Store, rollouts: readonly RecordedRollout[]): Promise<readonly string[]> {
  const run = { id: newId(), name: 'recorded', createdAt: 1, config: {} }
  await store.catalogue.putRun(run)
  const tasks: string[] = []
  const groups = new Map<string, string>()
  const ids: string[] = []
  for (const [slot, rollout] of rollouts.entries()) {
    const name = rollout.group ?? 'one'
    const taskName = rollout.task ?? 'recorded'
    const task = {
      digest: sha256(`${taskName} task`),
      name: taskName,
      environment: 'terminal',
      instruction: 'Count.',
      split: 'train',
      data: {},
      source: 'test',
    }
    if (!tasks.includes(taskName)) {
      tasks.push(taskName)
      await store.catalogue.putTask(task)
    }
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
    await recordSession(store, id, rollout, tasks.indexOf(taskName))
    if (rollout.end !== null) await store.catalogue.endRollout(id, 3, rollout.end ?? 'completed', '')
    if (rollout.taint !== undefined) await store.catalogue.taint(id, rollout.taint)
    if (rollout.reward !== null) await store.catalogue.appendVerdict(verdictOf(id, rollout))
  }
  return ids
}

/** A data URL as chat messages have it. */
const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }

async function recordSession(
  { recorder, catalogue }: Store,
  rolloutId: string,
  rollout: RecordedRollout,
  task: number,
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
    policy: rollout.policy === undefined ? policy : { ...policy, name: rollout.policy },
    keyDigest: sha256('key'),
    forkedFrom: null,
    createdAt: 1,
    labels: {},
  })
  const messages: object[] = []
  const answers: Segment['parent'][] = []
  const calls = rollout.branch === true ? 3 : (rollout.turns ?? 2)
  for (let seq = 0; seq < calls; seq += 1) {
    // Of a branch the third call goes on from the first answer, as the second does.
    const parent = seq === 0 ? null : (answers[rollout.branch === true ? 0 : seq - 1] ?? null)
    messages.push({
      role: 'user',
      content: rollout.image === true ? [picture] : (rollout.question?.(seq) ?? `question ${seq}`),
    })
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
      task,
      logprobs: rollout.logprobs ?? 'all',
    })
    const sampled = segments.at(-1)
    answers.push(sampled === undefined ? null : { segmentId: sampled.id, offset: sampled.tokens.length })
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
    readonly task: number
    readonly logprobs: 'all' | 'none' | 'gap'
  },
): readonly Segment[] {
  const { callId, sessionId, seq, parent, logprobKind } = place
  const second = place.logprobs === 'gap' && seq === 0 ? Number.NaN : -0.2
  const common = { sessionId, callId, flags: null, replayOf: null, stopCut: false }
  const promptId = newId()
  return [
    {
      ...common,
      id: promptId,
      choice: null,
      parent,
      origin: 'prompt',
      // The branch has a shorter prompt, so that the longest row is not the last one.
      tokens: Int32Array.from([100 + seq + 1000 * place.task, 200 + seq].slice(0, seq === 2 ? 1 : 2)),
      logprobs: null,
      logprobKind: 'unknown',
      policySpans: [],
    },
    {
      ...common,
      id: newId(),
      choice: 0,
      parent: { segmentId: promptId, offset: seq === 2 ? 1 : 2 },
      origin: 'sampled',
      tokens: Int32Array.from([1 + seq, 2 + seq, 3 + seq]),
      logprobs: place.logprobs === 'none' ? null : Float32Array.from([-0.1, second, -0.3]),
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
    startedAt: 2 + rest.seq,
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
    trust: rollout.trust ?? ('separate' as const),
    by: 'verifier' as const,
    costTokens: 0,
    supersedes: null,
  }
  if (typeof reward === 'number') return { ...facts, status: 'scored', reward }
  return { ...facts, status: reward ?? 'pending', reward: null, reason: 'made so' }
}
