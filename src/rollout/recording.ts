import { type Clock, type Id, type IdMaker, newId, systemClock } from '../core/index.ts'
import type { OpenedSession, OpenSession, Proxy } from '../proxy/index.ts'
import type { Store } from '../trajectory/index.ts'
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
  /** Name of run and task; recordings of one name are one group per process. */
  readonly name: string
  readonly session: Omit<OpenSession, 'rolloutId'>
  readonly clock?: Clock
  readonly newId?: IdMaker
}

/** Opens a recording. Its verdict stays empty: nobody verifies it. Throws what the store and the proxy throw. */
export async function openRecording(options: RecordingOptions): Promise<Recording> {
  const { store, proxy, name, clock = systemClock } = options
  const id = options.newId ?? newId
  const at = clock.now()
  const task = bareTask({ name, instruction: '' })
  const run = { id: id(), name, createdAt: at, config: { recording: true } }
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
