import { createHash } from 'node:crypto'
import {
  makeTask,
  type Clock,
  type Digest,
  type Id,
  newId,
  PaddockError,
  sha256,
  systemClock,
} from '../../core/index.ts'
import { type CallIntent, importedHarness, type RolloutView, type Segment, type Store } from '../contract/index.ts'
import type { ImportedThread, ImportedTrajectory } from './contract.ts'
import { isAnswer, readTrajectories } from './read.ts'

/** How many trajectories are written beside each other. */
const atOnce = 16

export interface ImportRequest {
  readonly format: string
  readonly paths: readonly string[]
  /** Name of the run; the format by default. */
  readonly name?: string
  readonly split?: string
  /** The reward of what has none in its file; without it such a rollout has no verdict. */
  readonly reward?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly clock?: Clock
  readonly signal?: AbortSignal
}

export interface ImportReport {
  readonly runId: Id
  /** False: an earlier import of the same files is gone on with, or was whole. */
  readonly isNew: boolean
  readonly trajectories: number
  /** Of these, by this call. */
  readonly taken: number
  readonly groups: number
  readonly withReward: number
}

/**
 * Takes trajectories of others into a store: a run of their own, a group per task, a rollout per trajectory, a session per thread, a
 * call per answer. All is read and checked before the first is written. The same files imported again with the same options go on where it was cut off, and
 * change nothing where it was not. Throws `IMPORT_INVALID`, `USAGE`.
 */
export async function importTrajectories(store: Store, request: ImportRequest): Promise<ImportReport> {
  const { digest, trajectories } = await survey(request)
  const clock = request.clock ?? systemClock
  const earlier = (await store.catalogue.runs()).find((run) => digestOf(run.config) === digest)
  const run = earlier ?? {
    id: newId(),
    name: request.name ?? `import-${request.format}`,
    createdAt: clock.now(),
    config: { import: { format: request.format, digest, trajectories, reward: request.reward ?? null } },
  }
  if (earlier === undefined) await store.catalogue.putRun(run)
  // By group and slot: one that was cut off early has no labels yet.
  const known = new Map<string, RolloutView>()
  for (const rollout of earlier === undefined ? [] : await store.catalogue.rollouts({ runId: run.id })) {
    const key = keyOf(rollout)
    if ((known.get(key)?.attempt ?? -1) < rollout.attempt) known.set(key, rollout)
  }
  const writer = new Writer(store, request, { runId: run.id, digest, clock })
  for (const { id, taskDigest } of await store.catalogue.groups(run.id)) writer.groups.set(taskDigest, id)
  const writing = new Set<Promise<void>>()
  let taken = 0
  let withReward = 0
  for await (const one of readTrajectories(request.format, request.paths)) {
    request.signal?.throwIfAborted()
    if ((one.reward ?? request.reward ?? null) !== null) withReward += 1
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
  return { runId: run.id, isNew: earlier === undefined, trajectories, taken, groups: writer.groups.size, withReward }
}

/** Reads all of it once: that it can be imported, and what it is. */
async function survey(request: ImportRequest): Promise<{ digest: Digest; trajectories: number }> {
  const { format, paths, name = null, split = null, reward = null, labels = {} } = request
  // What is written of the same files under other options is another import.
  const hash = createHash('sha256').update(JSON.stringify([format, name, split, reward, labels]))
  let trajectories = 0
  for await (const one of readTrajectories(format, paths)) {
    hash.update(JSON.stringify(one))
    trajectories += 1
  }
  if (trajectories === 0) {
    throw new PaddockError('IMPORT_INVALID', 'There is nothing in the given files', { fix: 'Name others.' })
  }
  return { digest: hash.digest('hex'), trajectories }
}

function digestOf(config: unknown): unknown {
  if (typeof config !== 'object' || config === null || !('import' in config)) return null
  const { import: of } = config
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
  readonly #request: ImportRequest
  readonly #of: { readonly runId: Id; readonly digest: Digest; readonly clock: Clock }
  readonly #slots = new Map<Id, number>()

  constructor(store: Store, request: ImportRequest, of: { runId: Id; digest: Digest; clock: Clock }) {
    this.#store = store
    this.#request = request
    this.#of = of
  }

  /** The next place in the group of a trajectory's task; by the order of the files, so that it is the same when they are read again. */
  async placeOf({ task: { name, instruction }, threads }: ImportedTrajectory): Promise<Placed> {
    const { catalogue } = this.#store
    const told = instruction ?? firstWords(threads[0])
    const task = makeTask({
      name: name ?? 'imported',
      environment: importedHarness,
      instruction: told,
      split: this.#request.split ?? 'train',
      data: { name },
      source: this.#request.format,
    })
    let groupId = this.groups.get(task.digest)
    if (groupId === undefined) {
      await catalogue.putTask(task)
      groupId = newId()
      const { runId, clock } = this.#of
      await catalogue.putGroup({
        id: groupId,
        runId,
        taskDigest: task.digest,
        promptVariant: 'imported',
        createdAt: clock.now(),
      })
      this.groups.set(task.digest, groupId)
    }
    const slot = this.#slots.get(groupId) ?? 0
    this.#slots.set(groupId, slot + 1)
    return { groupId, slot }
  }

  async write(
    one: ImportedTrajectory,
    { groupId, slot, before }: Placed & { before: RolloutView | null },
  ): Promise<void> {
    const { catalogue } = this.#store
    const { runId, digest, clock } = this.#of
    if (before !== null && before.end === null) {
      await catalogue.endRollout(before.id, clock.now(), 'cancelled', 'its import was cut off')
    }
    const id = newId()
    const attempt = before === null ? 0 : before.attempt + 1
    await catalogue.putRollout({ id, runId, groupId, slot, attempt, harness: importedHarness, createdAt: clock.now() })
    const labels = {
      ...one.labels,
      ...(one.model === null ? {} : { model: one.model }),
      ...this.#request.labels,
      place: one.place,
    }
    for (const [name, value] of Object.entries(labels)) await catalogue.label(id, name, value)
    await catalogue.startRollout(id, clock.now())
    const steps: { readonly callId: Id; readonly value: number }[] = []
    for (const [nth, thread] of one.threads.entries()) {
      for (const [at, callId] of (await this.#thread(id, thread, { nth, model: one.model })).entries()) {
        const value = thread.values?.[at] ?? null
        if (value !== null) steps.push({ callId, value })
      }
    }
    const reward = one.reward ?? this.#request.reward ?? null
    if (reward !== null) {
      await catalogue.appendVerdict({
        id: newId(),
        rolloutId: id,
        at: clock.now(),
        status: 'scored',
        reward,
        components: {},
        steps,
        evidence: one.reward === null ? 'Given by whoever imported it.' : `As ${one.place} says.`,
        artifacts: [],
        verifier: { id: 'imported', version: this.#request.format, sha256: digest },
        trust: 'host',
        by: 'verifier',
        costTokens: 0,
        supersedes: null,
      })
    }
    await catalogue.endRollout(id, clock.now(), 'completed', `imported from ${one.place}`)
  }

  /** A session with a call for each answer, which are told. Only the last one ends a row: a thread is one conversation. */
  async #thread(
    rolloutId: Id,
    { messages, tools }: ImportedThread,
    { nth, model }: { readonly nth: number; readonly model: string | null },
  ): Promise<readonly Id[]> {
    const { recorder } = this.#store
    const { clock } = this.#of
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
      keyDigest: sha256(`imported ${sessionId}`),
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
      const intent = intentOf(sessionId, { seq, nth, model, body: `{${members.join(',')}}`, at: clock.now() })
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
    readonly nth: number
    readonly model: string | null
    readonly body: string
    readonly at: number
  },
): CallIntent {
  const { seq, nth, model, body, at } = about
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
      nativeAgent: nth === 0 ? null : `subagent-${nth}`,
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
    callClass: nth === 0 ? 'main' : 'subagent',
    strategy: 'record',
    asked: unknownSampling,
    used: unknownSampling,
    fingerprint: null,
    headers: {},
    body: new TextEncoder().encode(body),
  }
}

function firstWords({ messages }: ImportedThread): string {
  for (const text of messages) {
    const { role, content } = JSON.parse(text) as { readonly role?: unknown; readonly content?: unknown }
    if (role !== 'user') continue
    if (typeof content === 'string') return content
    if (!Array.isArray(content)) return ''
    return content
      .map((part: unknown) => (typeof part === 'object' && part !== null && 'text' in part ? String(part.text) : ''))
      .join('')
  }
  return ''
}
