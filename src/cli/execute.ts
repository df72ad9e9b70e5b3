import { resolve } from 'node:path'
import { type Id, type LoadedConfig, PaddockError, type Task } from '../core/index.ts'
import {
  type Harness,
  recordBoxEvents,
  type RunProgress,
  type RunSummary,
  runRollouts,
  followEngine,
  policyPause,
} from '../rollout/index.ts'
import type { SandboxProvider } from '../sandbox/index.ts'
import { present, type RunRequest, sessionPolicy } from '../server/index.ts'
import { environmentsOf } from './environments.ts'
import { harnessFor } from './harnesses.ts'
import { logBoxEvents, logMissedPause, logProgress } from './observe.ts'
import type { Owner } from './owner.ts'
import { sandboxOf } from './sandbox.ts'

/** A run whose tasks are loaded and whose parts are found; nothing has been started. */
export interface PreparedRun {
  readonly tasks: readonly Task[]
  /** Runs to the end. Closes its sandbox afterwards, also when it fails. */
  start(o: StartOptions): Promise<RunSummary>
}

export interface StartOptions {
  readonly owner: Owner
  readonly runId: Id
  readonly signal: AbortSignal
  readonly onProgress: (progress: RunProgress) => void
}

/** Loads tasks, environment and harness. Throws `TASK_*`, `ENVIRONMENT_*`, `HARNESS_UNKNOWN` before anything runs. */
export async function prepareRun(loaded: LoadedConfig, request: RunRequest, signal: AbortSignal): Promise<PreparedRun> {
  const { config } = loaded
  const environment = (await environmentsOf(loaded, { also: request.environment, trustTasks: request.trustTasks })).get(
    request.environment,
  )
  const harness: Harness = await harnessFor(loaded, request.harness, request.command)
  const loadedTasks = await environment.load(resolve(request.tasks), { signal })
  const tasks = outOfQuarantine(chosen(loadedTasks, request.only), request.without)
  return {
    tasks,
    start: async ({ owner, runId, signal: stop, onProgress }) => {
      const sandbox = await sandboxOf(
        config,
        logBoxEvents(owner.log.room('sandbox'), recordBoxEvents(owner.store.recorder)),
      )
      const logRun = logProgress(owner.log.room('rollout'))
      const pause = policyPause(sandbox)
      const follow = followEngine(pause, logMissedPause(owner.log.room('sandbox')))
      owner.engineListeners.add(follow)
      try {
        if (needsBox(harness)) await requireDocker(sandbox)
        return await runRollouts({
          store: owner.store,
          proxy: owner.proxy,
          inferenceOrigin: owner.listener.origin,
          sandbox,
          environment,
          tasks,
          harness,
          model: owner.engine.model,
          n: request.n ?? config.run.n,
          runId,
          policy: sessionPolicy(config.session, owner.engine.model),
          budgets: present(config.run.budgets),
          limits: present(config.run.limits),
          trainingStep: request.step,
          snapshotEvery: config.run.snapshotEvery,
          policyPause: pause,
          scriptedEngine: owner.engine.scripted === null ? null : { control: owner.engine.scripted.control },
          signal: stop,
          onProgress: (progress) => {
            logRun(progress)
            onProgress(progress)
          },
          ...(request.name === null ? {} : { name: request.name }),
        })
      } finally {
        owner.engineListeners.delete(follow)
        await sandbox.close()
      }
    },
  }
}

function outOfQuarantine(tasks: readonly Task[], without: readonly string[]): readonly Task[] {
  const left = tasks.filter(({ digest }) => !without.includes(digest))
  if (left.length > 0) return left
  throw new PaddockError('USAGE', 'all of the tasks are in quarantine', {
    fix: 'Correct them and validate them again.',
  })
}

function chosen(tasks: readonly Task[], only: readonly string[]): readonly Task[] {
  if (only.length === 0) return tasks
  const names = tasks.map((task) => task.name)
  const missing = only.filter((name) => !names.includes(name))
  if (missing.length > 0) {
    throw new PaddockError('USAGE', `no task is named ${missing.join(', ')}`, {
      fix: `There are: ${names.join(', ')}.`,
    })
  }
  return tasks.filter((task) => only.includes(task.name))
}

function needsBox(harness: Harness): boolean {
  return harness.place === 'box' || harness.box === 'tools'
}

/** Says at once what would otherwise fail in every rollout, and removes what earlier processes left behind. */
async function requireDocker(sandbox: SandboxProvider): Promise<void> {
  const facts = await sandbox.probe()
  const fatal = facts.problems.find((problem) => problem.weight === 'fatal')
  if (fatal !== undefined) throw new PaddockError('SANDBOX_UNAVAILABLE', fatal.what, { fix: fatal.fix })
  await sandbox.sweep()
}
