import { type Clock, type Digest, type Id, newId, sha256, type Task, type VerdictDraft } from '../../core/index.ts'
import type { CallIntent, RolloutView, Segment, Store } from '../contract/index.ts'
import type { ImportedThread, ImportedTrajectory } from './contract.ts'
import { isAnswer } from './raw.ts'

/** How many trajectories are written beside each other. */
const atOnce = 16

/** A rollout that was not done here, and the task that it is of. */
export interface TakenIn extends Pick<ImportedTrajectory, 'place' | 'model' | 'labels' | 'threads'> {
  readonly task: Task
  /** Null: it has no verdict. */
  readonly verdict: VerdictDraft | null
}

export interface TakeIn {
  /** What the run is called in its configuration, under which its digest stands. */
  readonly kind: 'import' | 'rewrite'
  /** The same digest is the same run: it is gone on with, or was whole. */
  readonly digest: Digest
  readonly about: Readonly<Record<string, unknown>>
  readonly name: string
  readonly harness: string
  readonly promptVariant: string
  /** In an order that is the same each time. */
  readonly rollouts: AsyncIterable<TakenIn> | Iterable<TakenIn>
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
}

export interface TakeInReport {
  readonly runId: Id
  /** False: an earlier run of the same digest is gone on with, or was whole. */
  readonly isNew: boolean
  /** By this call. */
  readonly taken: number
  readonly groups: number
}

/**
 * Writes rollouts that nobody sampled here into a run of their own: a group per task, a rollout each, a session per thread, a call per
 * answer. The same digest again goes on where it was cut off. Throws `STORE_*`.
 */
export async function takeIn(store: Store, o: TakeIn): Promise<TakeInReport> {
  const { kind, digest, clock } = o
  const earlier = (await store.catalogue.runs()).find((run) => digestOf(run.config, kind) === digest)
  const run = earlier ?? {
    id: newId(),
    name: o.name,
    createdAt: clock.now(),
    config: { [kind]: { ...o.about, digest } },
  }
  if (earlier === undefined) await store.catalogue.putRun(run)
  // By group and slot: one that was cut off early has no labels yet.
  const known = new Map<string, RolloutView>()
  for (const rollout of earlier === undefined ? [] : await store.catalogue.rollouts({ runId: run.id })) {
    const key = keyOf(rollout)
    if ((known.get(key)?.attempt ?? -1) < rollout.attempt) known.set(key, rollout)
  }
  const writer = new Writer(store, o, run.id)
  for (const { id, taskDigest } of await store.catalogue.groups(run.id)) writer.groups.set(taskDigest, id)
  const writing = new Set<Promise<void>>()
  let taken = 0
  for await (const one of o.rollouts) {
    o.signal?.throwIfAborted()
    const at = await writer.placeOf(one)
    const before = known.get(keyOf(at))
    if (before !== undefined && before.end !== null && before.end !== 'cancelled') continue
    taken += 1
    const written = writer.write(one, { ...at, before: before ?? null }).finally(() => writing.delete(written))
    writing.add(written)
    if (writing.size >= atOnce) await Promise.race(writing)
  }
  await Promise.all(writing)
  await store.recorder.flush()
  return { runId: run.id, isNew: earlier === undefined, taken, groups: writer.groups.size }
}

function digestOf(config: unknown, kind: TakeIn['kind']): unknown {
  if (typeof config !== 'object' || config === null || !(kind in config)) return null
  const of: unknown = Object.entries(config).find(([name]) => name === kind)?.[1]
  return typeof of === 'object' && of !== null && 'digest' in of ? of.digest : null
}

function keyOf({ groupId, slot }: Placed): string {
  return `${groupId}/${slot}`
}

interface Placed {
  readonly groupId: Id
  readonly slot: number
}

class Writer {
  /** By task digest. */
  readonly groups = new Map<string, Id>()
  readonly #store: Store
  readonly #o: TakeIn
  readonly #runId: Id
  readonly #slots = new Map<Id, number>()

  constructor(store: Store, o: TakeIn, runId: Id) {
    this.#store = store
    this.#o = o
    this.#runId = runId
  }

  /** The next place in the group of a rollout's task; by their order, so that it is the same when they are read again. */
  async placeOf({ task }: TakenIn): Promise<Placed> {
    const { catalogue } = this.#store
    let groupId = this.groups.get(task.digest)
    if (groupId === undefined) {
      await catalogue.putTask(task)
      groupId = newId()
      const { promptVariant, clock } = this.#o
      await catalogue.putGroup({
        id: groupId,
        runId: this.#runId,
        taskDigest: task.digest,
        promptVariant,
        createdAt: clock.now(),
      })
      this.groups.set(task.digest, groupId)
    }
    const slot = this.#slots.get(groupId) ?? 0
    this.#slots.set(groupId, slot + 1)
    return { groupId, slot }
  }

  async write(one: TakenIn, { groupId, slot, before }: Placed & { before: RolloutView | null }): Promise<void> {
    const { catalogue } = this.#store
    const { kind, harness, clock } = this.#o
    if (before !== null && before.end === null) {
      await catalogue.endRollout(before.id, clock.now(), 'cancelled', `its ${kind} was cut off`)
    }
    const id = newId()
    const attempt = before === null ? 0 : before.attempt + 1
    await catalogue.putRollout({ id, runId: this.#runId, groupId, slot, attempt, harness, createdAt: clock.now() })
    for (const [name, value] of Object.entries(one.labels)) await catalogue.label(id, name, value)
    await catalogue.startRollout(id, clock.now())
    const steps: { readonly callId: Id; readonly value: number }[] = []
    for (const [nth, thread] of one.threads.entries()) {
      for (const [at, callId] of (await this.#thread(id, thread, { nth, model: one.model })).entries()) {
        const value = thread.values?.[at] ?? null
        if (value !== null) steps.push({ callId, value })
      }
    }
    if (one.verdict !== null) {
      const about = { id: newId(), rolloutId: id, at: clock.now(), by: 'verifier' as const, supersedes: null }
      await catalogue.appendVerdict({ ...one.verdict, ...about, steps: [...one.verdict.steps, ...steps] })
    }
    await catalogue.endRollout(
      id,
      clock.now(),
      'completed',
      `${kind === 'import' ? 'imported' : 'rewritten'} from ${one.place}`,
    )
  }

  /** A session with a call for each answer, which are told. Only the last one ends a row: a thread is one conversation. */
  async #thread(
    rolloutId: Id,
    { messages, tools, of }: ImportedThread,
    { nth, model }: { readonly nth: number; readonly model: string | null },
  ): Promise<readonly Id[]> {
    const { recorder } = this.#store
    const { clock } = this.#o
    const sessionId = newId()
    await recorder.openSession({
      id: sessionId,
      rolloutId,
      role: 'agent',
      policy: {
        strategy: 'record',
        history: 'sampled',
        pin: {},
        clamp: {},
        defaults: {},
        model,
        budget: { maxCalls: null, maxSampledTokens: null, maxWallMs: null },
        onDisconnect: 'finish',
      },
      // No key opens it.
      keyDigest: sha256(`${this.#o.kind} ${sessionId}`),
      forkedFrom: null,
      createdAt: clock.now(),
      labels: {},
    })
    const answers = messages.flatMap((text, at) => (isAnswer(text) ? [at] : []))
    const calls: Id[] = []
    let parent: Segment['parent'] = null
    for (const [seq, at] of answers.entries()) {
      const asked = messages.slice(0, at)
      const members = [
        ...(model === null ? [] : [`"model":${JSON.stringify(model)}`]),
        `"messages":[${asked.join(',')}]`,
        ...(tools === null ? [] : [`"tools":${tools}`]),
      ]
      const agent = of === 'main' ? null : `subagent-${nth}`
      const intent = intentOf(sessionId, { seq, agent, model, body: `{${members.join(',')}}`, at: clock.now() })
      await recorder.beginCall(intent)
      const message = messages[at] ?? ''
      const segmentId = newId()
      calls.push(intent.id)
      await recorder.commitCall({
        callId: intent.id,
        endedAt: intent.startedAt,
        firstByteAt: null,
        outcome: { kind: 'complete' },
        choices: [{ index: 0, finishReason: null, segmentId, message, claimedTokens: null }],
        segments: [
          {
            id: segmentId,
            sessionId,
            callId: intent.id,
            choice: 0,
            parent,
            origin: 'imported',
            tokens: new Int32Array(0),
            logprobs: null,
            flags: null,
            logprobKind: 'unknown',
            policySpans: [],
            replayOf: null,
            stopCut: false,
          },
        ],
        spans: [],
        promptLeaf: null,
        forks: [],
        claimedPromptTokens: null,
        findings: [],
        status: null,
        reply: new TextEncoder().encode(`{"choices":[{"index":0,"message":${message},"finish_reason":null}]}`),
        replyMarks: [],
        weightVersionBefore: null,
        weightVersionAfter: null,
      })
      parent = { segmentId, offset: 0 }
    }
    await recorder.closeSession(sessionId, clock.now())
    return calls
  }
}

const unknownSampling: CallIntent['asked'] = {
  temperature: null,
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

function intentOf(
  sessionId: Id,
  about: {
    readonly seq: number
    /** Null: the main conversation. */
    readonly agent: string | null
    readonly model: string | null
    readonly body: string
    readonly at: number
  },
): CallIntent {
  const { seq, agent, model, body, at } = about
  return {
    id: newId(),
    sessionId,
    seq,
    startedAt: at,
    dialect: 'chat',
    path: '/imported',
    streamed: false,
    requestDigest: sha256(body),
    retryOf: null,
    lineage: {
      nativeSession: null,
      nativeAgent: agent,
      nativeParent: null,
      requestKind: null,
      toolsDigest: null,
      toolCount: 0,
      systemDigest: null,
      userAgent: null,
      modelAsked: model,
      retryCount: null,
      idempotencyKey: null,
    },
    callClass: agent === null ? 'main' : 'subagent',
    strategy: 'record',
    asked: unknownSampling,
    used: unknownSampling,
    fingerprint: null,
    headers: {},
    body: new TextEncoder().encode(body),
  }
}
