import { availableParallelism } from 'node:os'
import { isPaddockError, newId, PaddockError, systemClock, type Task } from '../core/index.ts'
import type { Listener } from '../proxy/index.ts'
import type { BundleRef, ImageRef, SandboxProvider } from '../sandbox/index.ts'
import type { GroupRecord } from '../trajectory/index.ts'
import type { RolloutSummary, RunOptions, RunSummary, StageBudgets, WorkerLimits } from './contract.ts'
import { Gate } from './gate.ts'
import { groupRewarded } from './group-rewards.ts'
import { summariseGroup } from './groups.ts'
import { repeatsOf } from './repeats.ts'
import type { Harness } from './harnesses/contract.ts'
import { postScripts } from './scripts.ts'
import { runRollout } from './rollout.ts'
import type { Member, RunParts } from './run-parts.ts'

/** Budgets of stages whose task and run say nothing. */
export const defaultBudgets: StageBudgets = {
  bootMs: 300_000,
  setupMs: 300_000,
  agentMs: 600_000,
  collectMs: 120_000,
  verifyMs: 600_000,
  agentWallMs: 4 * 3_600_000,
}

/** An agent mostly waits for the model, so there are more of them than cores. */
export function defaultLimits(cores: number = availableParallelism()): WorkerLimits {
  return { boot: 2, agent: 2 * cores, verify: 2 }
}

/** Faults that another attempt meets again. */
const lasting: ReadonlySet<string> = new Set([
  'IMAGE_BUILD_FAILED',
  'IMAGE_DOCKERFILE_UNSUPPORTED',
  'IMAGE_MISSING',
  'SANDBOX_CAPABILITY',
  'HARNESS_INVALID',
  'HARNESS_UNFIT',
  'ENGINE_INCAPABLE',
])

/**
 * Runs `n` rollouts of a harness at each task. Every attempt is recorded from its first moment; an attempt that ended as
 * `infra` is tried again and never scored. On cancellation it resolves with what there is. Throws before any rollout
 * for what all would meet: `SANDBOX_UNAVAILABLE`, `BUNDLE_FAILED`, `HARNESS_INVALID`, engine codes of the scripts; later
 * only `STORE_*`.
 */
export async function runRollouts(asked: RunOptions): Promise<RunSummary> {
  // Without a box there is nothing to ask of the sandbox, which then need not even be there.
  const options = needsBox(asked.harness) ? asked : { ...asked, sandbox: null }
  const cancel = new AbortController()
  const stop = () => cancel.abort(options.signal?.reason)
  if (options.signal?.aborted === true) stop()
  options.signal?.addEventListener('abort', stop, { once: true })
  let listener: Listener | null = null
  try {
    const bundle = await prepare(options, cancel.signal).catch((error: unknown) => {
      // The run is recorded all the same, with its rollouts as cancelled.
      if (cancel.signal.aborted) return null
      throw error
    })
    let origin = options.inferenceOrigin ?? null
    if (origin === null && options.harness.place === 'host') {
      listener = await options.proxy.listen({ host: '127.0.0.1', port: 0 })
      origin = listener.origin
    }
    return await runAll(
      options,
      partsOf(options, { bundle, inferenceOrigin: origin ?? '', signal: cancel.signal }),
      cancel,
    )
  } finally {
    options.signal?.removeEventListener('abort', stop)
    await listener?.close()
  }
}

function needsBox(harness: Harness): boolean {
  return harness.place === 'box' || harness.box === 'tools'
}

/** What is the same for all rollouts, and better said once than by each of them. */
async function prepare(options: RunOptions, signal: AbortSignal): Promise<BundleRef | null> {
  const { harness, environment, sandbox, tasks, onProgress, scriptedEngine = null } = options
  if (needsBox(harness) && (environment === null ? harness.place === 'box' : sandbox === null)) {
    throw new PaddockError('HARNESS_INVALID', `The harness ${harness.name} needs a box, and this run has none`, {
      fix: 'Run it on tasks of an environment, with a sandbox.',
    })
  }
  if (signal.aborted) return null
  if (sandbox !== null) await ready(sandbox)
  if (scriptedEngine !== null && environment !== null) {
    await postScripts({ control: scriptedEngine.control, environment, tasks, signal })
  }
  if (harness.place === 'host' || harness.bundle === null || sandbox === null) return null
  const note = (line: string) => onProgress?.({ type: 'note', line })
  return sandbox.ensureBundle(harness.bundle, { signal, onProgress: note })
}

async function ready(sandbox: SandboxProvider): Promise<void> {
  const { problems } = await sandbox.probe()
  const fatal = problems.find(({ weight }) => weight === 'fatal')
  if (fatal !== undefined) throw new PaddockError('SANDBOX_UNAVAILABLE', fatal.what, { fix: fatal.fix })
  // What an earlier, killed Paddock left behind. Its failing is no reason not to run.
  await sandbox.sweep().catch(() => undefined)
}

function partsOf(options: RunOptions, made: Pick<RunParts, 'bundle' | 'inferenceOrigin' | 'signal'>): RunParts {
  const { store, proxy, sandbox, environment, harness, model, onProgress } = options
  const limits = { ...defaultLimits(), ...options.limits }
  return {
    ...made,
    runId: options.runId ?? (options.newId ?? newId)(),
    store,
    proxy,
    sandbox,
    environment,
    harness,
    model,
    policy: options.policy ?? {},
    budgets: { ...defaultBudgets, ...options.budgets },
    gates: {
      live: new Gate(limits.agent + limits.boot),
      boot: new Gate(limits.boot),
      agent: new Gate(limits.agent),
      verify: new Gate(limits.verify),
    },
    trainingStep: options.trainingStep ?? null,
    snapshotEvery: options.snapshotEvery ?? null,
    policyPause: options.policyPause ?? null,
    clock: options.clock ?? systemClock,
    newId: options.newId ?? newId,
    onProgress: onProgress ?? (() => undefined),
    imageReady: imagesOf(options, made.signal),
    leftovers: [],
  }
}

function imagesOf({ environment, sandbox, onProgress }: RunOptions, signal: AbortSignal): RunParts['imageReady'] {
  const asked = new Map<string, Promise<ImageRef>>()
  return (task) => {
    if (environment === null || sandbox === null) return Promise.resolve(null)
    const known = asked.get(task.digest)
    if (known !== undefined) return known
    const note = (line: string) => onProgress?.({ type: 'note', line })
    const image = sandbox.ensureImage(environment.box(task).image, { signal, onProgress: note })
    asked.set(task.digest, image)
    return image
  }
}

async function runAll(options: RunOptions, run: RunParts, cancel: AbortController): Promise<RunSummary> {
  const { tasks, n = 1, infraRetries = 2 } = options
  const { catalogue } = run.store
  await catalogue.putRun({
    id: run.runId,
    name: options.name ?? `${run.harness.name} on ${run.environment?.name ?? 'bare tasks'}`,
    createdAt: run.clock.now(),
    config: configOf(options, run),
  })
  const groups = await Promise.all(tasks.map((task) => putGroup(options, run, task)))
  run.onProgress({ type: 'run', runId: run.runId, rollouts: tasks.length * n })
  const members = groups.flatMap(({ task, group }) => Array.from({ length: n }, (_, slot) => ({ task, group, slot })))
  const outcomes = await Promise.allSettled(
    members.map(async (member) => {
      try {
        return await runMember(run, member, infraRetries)
      } catch (error) {
        // A store that fails fails everybody: no use in going on.
        cancel.abort(error)
        throw error
      }
    }),
  )
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  await run.store.recorder.flush()
  const alone = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []))
  const rollouts = await groupRewarded(run, groups, alone)
  return {
    runId: run.runId,
    cancelled: run.signal.aborted,
    rollouts,
    groups: groups.map(({ task, group }) => summariseGroup(group, task, rollouts)),
    repeats: repeatsOf(rollouts),
    leftovers: run.leftovers,
  }
}

async function putGroup(
  options: RunOptions,
  run: RunParts,
  task: Task,
): Promise<{ readonly task: Task; readonly group: GroupRecord }> {
  const group = {
    id: run.newId(),
    runId: run.runId,
    taskDigest: task.digest,
    promptVariant: options.promptVariant ?? 'default',
    createdAt: run.clock.now(),
  }
  await run.store.catalogue.putTask(task)
  await run.store.catalogue.putGroup(group)
  return { task, group }
}

/** Attempts at one slot until one does not end as `infra`. */
async function runMember(run: RunParts, member: Member, infraRetries: number): Promise<readonly RolloutSummary[]> {
  const attempts: RolloutSummary[] = []
  for (;;) {
    const { summary, fault } = await runRollout(run, member, attempts.length)
    const again = summary.end === 'infra' && attempts.length < infraRetries && !isLasting(fault) && !run.signal.aborted
    attempts.push({ ...summary, retried: again })
    run.onProgress({ type: 'ended', rollout: { ...summary, retried: again } })
    if (!again) return attempts
  }
}

function isLasting(fault: unknown): boolean {
  return isPaddockError(fault) && lasting.has(fault.code)
}

/** What of the options can be read back later; JSON. */
function configOf({ n = 1, promptVariant, limits, infraRetries }: RunOptions, run: RunParts): unknown {
  const { harness, environment, model, policy, budgets, trainingStep } = run
  return {
    harness: { name: harness.name, version: harness.version, dialect: harness.dialect, place: harness.place },
    environment: environment === null ? null : { name: environment.name, verifierVersion: environment.verifierVersion },
    model,
    n,
    promptVariant: promptVariant ?? 'default',
    trainingStep,
    policy,
    budgets,
    limits: { ...defaultLimits(), ...limits },
    infraRetries: infraRetries ?? 2,
  }
}
