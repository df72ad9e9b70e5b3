import { type Clock, type Id, type IdMaker, newId, systemClock } from '../core/index.ts'
import type { OpenedSession, OpenSession, Proxy } from '../proxy/index.ts'
import type { RunRecord, SessionRecord, Store } from '../trajectory/index.ts'
import { bareTask } from './bare-task.ts'

/** A session that somebody uses from outside, as a rollout of no environment: it can be shown and exported like any. */
export interface Recording extends OpenedSession {
  readonly rolloutId: Id
  /** Closes the session and ends the rollout as `completed`. Idempotent. */
  end(): Promise<void>
}

export interface RecordingOptions {
  readonly store: Pick<Store, 'catalogue'>
  readonly proxy: Proxy
  /** Name of run and task. */
  readonly name: string
  readonly session: Omit<OpenSession, 'rolloutId'>
  /** The run that it becomes a group of; default: one of its own. */
  readonly run?: RunRecord
  readonly clock?: Clock
  readonly newId?: IdMaker
}

const recordingConfig = { recording: true }

/** True for the run of a recording. */
export function isRecording({ config }: RunRecord): boolean {
  return typeof config === 'object' && config !== null && 'recording' in config && config.recording === true
}

/** True for a session that an earlier process left and that may be gone on with: its rollout, if any, has no end. */
export async function mayGoOn({ catalogue }: Pick<Store, 'catalogue'>, { rolloutId }: SessionRecord): Promise<boolean> {
  if (rolloutId === null) return true
  const rollout = await catalogue.rollout(rolloutId).catch(() => null)
  return rollout === null || (rollout.end === null && rollout.work === null)
}

/** Name of the runs whose sessions somebody asked for. */
const askedFor = 'sessions'

/** True for the run of a recording that a program opened by itself. */
function isOwnRecording(run: RunRecord): boolean {
  return isRecording(run) && run.name !== askedFor
}

/** How far back {@link endRecordings} looks. */
const lookBackRuns = 50

/**
 * Ends the recordings that programs opened for whoever read their output and that are still open, those of earlier processes too, as `completed`. For an
 * owner that stops in an orderly way. Those that somebody asked for go on under their keys after a restart. Resolves with how many there were.
 */
export async function endRecordings(
  { catalogue, recorder }: Pick<Store, 'catalogue' | 'recorder'>,
  proxy: Pick<Proxy, 'closeSession'>,
  { clock = systemClock }: { readonly clock?: Clock } = {},
): Promise<number> {
  let count = 0
  for (const run of (await catalogue.runs(lookBackRuns)).filter(isOwnRecording)) {
    for (const rollout of await catalogue.rollouts({ runId: run.id })) {
      if (rollout.end !== null) continue
      for (const { id, role } of await recorder.sessions({ rolloutId: rollout.id })) {
        if (role !== 'probe') await proxy.closeSession(id)
      }
      await catalogue.endRollout(rollout.id, clock.now(), 'completed', 'recording closed')
      count += 1
    }
  }
  return count
}

/** Opens a recording. Its verdict stays empty: nobody verifies it. Throws what the store and the proxy throw. */
export async function openRecording(options: RecordingOptions): Promise<Recording> {
  const { store, proxy, name, clock = systemClock } = options
  const id = options.newId ?? newId
  const at = clock.now()
  const task = bareTask({ name, instruction: '' })
  const run = options.run ?? recordingRun(name, at, id)
  const group = { id: id(), runId: run.id, taskDigest: task.digest, promptVariant: 'default', createdAt: at }
  const rollout = {
    id: id(),
    runId: run.id,
    groupId: group.id,
    slot: 0,
    attempt: 0,
    harness: 'external',
    createdAt: at,
  }
  await store.catalogue.putTask(task)
  await store.catalogue.putRun(run)
  await store.catalogue.putGroup(group)
  await store.catalogue.putRollout(rollout)
  await store.catalogue.startRollout(rollout.id, at)
  for (const [label, value] of Object.entries(options.session.labels ?? {})) {
    await store.catalogue.label(rollout.id, label, value)
  }
  const opened = await proxy.openSession({ ...options.session, rolloutId: rollout.id })
  let ended = false
  return {
    ...opened,
    rolloutId: rollout.id,
    end: async () => {
      if (ended) return
      ended = true
      await proxy.closeSession(opened.session.id)
      await store.catalogue.endRollout(rollout.id, clock.now(), 'completed', 'recording closed')
    },
  }
}

function recordingRun(name: string, at: number, id: IdMaker): RunRecord {
  return { id: id(), name, createdAt: at, config: recordingConfig }
}

interface RecordingsParts {
  readonly store: Pick<Store, 'catalogue' | 'recorder'>
  readonly proxy: Proxy
}

/**
 * The recordings that a control API opens, one run for all of them and a group for each. Closing the session of one ends its rollout, also of one that an
 * earlier process opened.
 */
export class Recordings {
  readonly #parts: RecordingsParts
  readonly #open = new Map<Id, Recording>()
  readonly #run = recordingRun(askedFor, systemClock.now(), newId)

  constructor(parts: RecordingsParts) {
    this.#parts = parts
  }

  /** Throws what the store and the proxy throw. */
  async open(session: RecordingOptions['session']): Promise<Recording> {
    const opened = await openRecording({ ...this.#parts, name: 'session', session, run: this.#run })
    this.#open.set(opened.session.id, opened)
    return opened
  }

  /** Closes a session, whoever opened it. Throws `SESSION_UNKNOWN`. */
  async close(id: Id): Promise<void> {
    const recording = this.#open.get(id)
    this.#open.delete(id)
    if (recording !== undefined) return recording.end()
    const { proxy, store } = this.#parts
    await proxy.closeSession(id)
    const { rolloutId } = (await store.recorder.session(id, { bodies: [] })).session
    if (rolloutId === null) return
    const rollout = await store.catalogue.rollout(rolloutId)
    if (rollout.end !== null || !isRecording(await store.catalogue.run(rollout.runId))) return
    await store.catalogue.endRollout(rolloutId, systemClock.now(), 'completed', 'recording closed')
  }
}
