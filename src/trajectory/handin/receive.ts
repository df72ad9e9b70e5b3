import {
  type Clock,
  type Digest,
  type Event,
  type Id,
  type IdMaker,
  isPaddockError,
  newId,
  PaddockError,
  sha256,
  systemClock,
} from '../../core/index.ts'
import type { RolloutView, Store } from '../contract/index.ts'
import { sessionsIn, type WholeSessions } from '../recorder/index.ts'
import { damaged, type PackedRecords, takeApart } from './form.ts'
import { putGroupOnce } from './group-once.ts'

/** What is handed in, by whom. */
export interface SentRollout {
  readonly bytes: Uint8Array
  /** SHA-256 of the bytes, as whoever sent them says. */
  readonly digest: Digest
  /** The name of a node or of a token. */
  readonly by: string
}

/** What came of it. */
export interface TakenIn {
  readonly rolloutId: Id
  /** True where it was here already, with the same content. */
  readonly repeated: boolean
}

export interface TakeInOptions {
  readonly clock?: Clock
  readonly newId?: IdMaker
  /** Looks at the rollout before anything of it is written, and throws where it is not one that is wanted. */
  readonly accepts?: (rollout: RolloutView) => void
}

/** Where a rollout is ingested. */
export type TakingStore = Pick<Store, 'recorder' | 'catalogue' | 'blobs'>

/**
 * Takes a rollout into this store that ran in another. Its sessions come in whole or not at all, and its end is written last: one that was
 * cut off between is a rollout without an end, and the same hand-in once more completes it. Throws `HANDIN_DAMAGED`,
 * `HANDIN_OTHER`, `STORE_CONFLICT` where its run, group or task is another here, `RECORDED_ELSEWHERE`.
 */
export async function takeInRollout(into: TakingStore, sent: SentRollout, o: TakeInOptions = {}): Promise<TakenIn> {
  const taken = (underWay.get(into.recorder) ?? Promise.resolve()).then(async () => takeIn(into, sent, o))
  underWay.set(
    into.recorder,
    taken.catch(() => {}),
  )
  return taken
}

/** One after the other for each store: each looks for what is there before it writes. */
const underWay = new WeakMap<TakingStore['recorder'], Promise<unknown>>()

async function takeIn(into: TakingStore, { bytes, digest, by }: SentRollout, o: TakeInOptions): Promise<TakenIn> {
  if (sha256(bytes) !== digest) throw damaged(`its bytes do not have the digest ${digest}`)
  const { records, facts, blobs } = takeApart(Buffer.from(bytes))
  const log = readLog(facts)
  requireWhole(records, log)
  for (const { digest: name, content } of blobs) {
    if (sha256(content) !== name) throw damaged(`blob ${name} does not have its digest`)
  }
  const { rollout } = records
  o.accepts?.(rollout)
  const before = await earlier(into, rollout.id)
  if (before.digest !== null && before.digest !== digest)
    throw other(rollout.id, `it was handed in with the digest ${before.digest}, and not ${digest}`)
  if (before.ended && before.digest === null) throw other(rollout.id, 'it ran and ended here')
  if (before.ended) return { rolloutId: rollout.id, repeated: true }
  for (const { content } of blobs) await into.blobs.put(content)
  await begin(into, records)
  if (before.digest === null) {
    const told: Event = {
      id: (o.newId ?? newId)(),
      at: (o.clock ?? systemClock).now(),
      rolloutId: rollout.id,
      sessionId: null,
      kind: 'handed_in',
      digest,
      sizeBytes: bytes.byteLength,
      by,
    }
    await into.recorder.takeIn(log.sessions, [...log.events, told])
  }
  await finish(into, rollout)
  return { rolloutId: rollout.id, repeated: before.digest !== null }
}

function readLog(facts: readonly Buffer[]): WholeSessions {
  try {
    return sessionsIn(facts)
  } catch (error) {
    throw damaged(error instanceof Error ? error.message : String(error))
  }
}

/** It is one rollout that has ended, and nothing of another. Throws `HANDIN_DAMAGED`. */
function requireWhole({ task, run, group, rollout }: PackedRecords, { sessions, events }: WholeSessions): void {
  const belongs = rollout.runId === run.id && rollout.groupId === group.id && group.runId === run.id
  if (!belongs || group.taskDigest !== task.digest) throw damaged('its run, group and task are not of one another')
  const hasEnded = rollout.end !== null && rollout.endedAt !== null
  if (!hasEnded && (rollout.end !== null || rollout.work === null)) throw damaged('it has not ended')
  const own = new Set<Id | null>(sessions.map(({ session }) => session.id))
  for (const { session, closedAt, calls } of sessions) {
    if (session.rolloutId !== rollout.id) throw damaged(`session ${session.id} is of another rollout`)
    if (closedAt === null) throw damaged(`session ${session.id} is not over`)
    if (calls.some(({ commit }) => commit === null)) throw damaged(`session ${session.id} has a call in flight`)
  }
  for (const { id, rolloutId, sessionId } of events) {
    const ours = rolloutId === rollout.id || (rolloutId === null && own.has(sessionId))
    if (!ours || (sessionId !== null && !own.has(sessionId))) throw damaged(`event ${id} is of another rollout`)
  }
}

async function earlier(
  { catalogue, recorder }: TakingStore,
  rolloutId: Id,
): Promise<{ readonly ended: boolean; readonly digest: Digest | null }> {
  const told = (await recorder.events({ rolloutId })).findLast((event) => event.kind === 'handed_in')
  const digest = told?.kind === 'handed_in' ? told.digest : null
  try {
    return { ended: (await catalogue.rollout(rolloutId)).end !== null, digest }
  } catch (error) {
    if (isPaddockError(error) && error.code === 'NOT_FOUND') return { ended: false, digest }
    throw error
  }
}

async function begin({ catalogue }: TakingStore, records: PackedRecords): Promise<void> {
  const { task, run, group, fingerprints, tokenTexts } = records
  const { id, runId, groupId, slot, attempt, harness, createdAt, startedAt } = records.rollout
  await catalogue.putTask(task)
  await catalogue.putRun(run)
  await putGroupOnce(catalogue, group)
  await catalogue.putRollout({ id, runId, groupId, slot, attempt, harness, createdAt })
  for (const fingerprint of fingerprints) await catalogue.putFingerprint(fingerprint)
  for (const [tokenizer, texts] of tokenTexts) {
    await catalogue.putTokenTexts(tokenizer, new Map(texts.map(([of, text]) => [of, Buffer.from(text, 'base64')])))
  }
  if (startedAt !== null) await catalogue.startRollout(id, startedAt)
}

/** Each of these is written once, however often it is tried; the end stands last, where it has one. */
async function finish({ catalogue }: TakingStore, rollout: RolloutView): Promise<void> {
  const { id, work, taints, labels, verdicts, end, endedAt, endDetail } = rollout
  const here = await catalogue.rollout(id)
  for (const cause of taints) await catalogue.taint(id, cause)
  for (const [name, value] of Object.entries(labels)) {
    if (here.labels[name] === undefined) await catalogue.label(id, name, value)
  }
  for (const verdict of verdicts) await catalogue.appendVerdict(verdict)
  // Only what is whole looks like one that waits for its verdict.
  if (work !== null) await catalogue.putWork(id, work)
  if (end !== null && endedAt !== null) await catalogue.endRollout(id, endedAt, end, endDetail)
}

function other(id: Id, why: string): PaddockError {
  return new PaddockError('HANDIN_OTHER', `rollout ${id} is here already: ${why}`)
}
