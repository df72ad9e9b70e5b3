import { taskImage } from '../envs/index.ts'
import { newId, PaddockError, systemClock, type Task } from '../core/index.ts'
import type { Listener } from '../proxy/index.ts'
import type { BundleRef, ImageRef, SandboxProvider } from '../sandbox/index.ts'
import type { ForkFrom, GroupRecord, GroupSpec, SessionPolicy } from '../trajectory/index.ts'
import { requireAgents } from './agents/index.ts'
import { defaultLimits, runBudgets } from './budgets.ts'
import type { RunOptions, RunSummary } from './contract.ts'
import { requireForkable } from './fork/forkable.ts'
import { forkLabels } from './fork/past.ts'
import { requireChain, runChain } from './chain/index.ts'
import { Gate } from './gate.ts'
import { type GroupWork, type RunGroup, RunGroups, runGroups } from './group/run-groups.ts'
import { groupSpec, injectLabels } from './group/spec.ts'
import { summariseGroup } from './groups.ts'
import { NullLimits } from './group/null-limit.ts'
import { repeatsOf } from './repeats.ts'
import type { Harness } from './harnesses/contract.ts'
import { postScripts } from './scripts.ts'
import type { RunParts } from './run-parts.ts'
import { requireUser } from './user/index.ts'
import { VerifyPlaces } from './verification/verify-places.ts'

/**
 * Runs `n` rollouts of a harness at each task. Every attempt is recorded from its first moment; an attempt that ended as
 * `infra` is tried again and never scored. Earlier groups go first wherever places are few. On cancellation it resolves
 * with what there is. Throws before any rollout for what all would meet: `SANDBOX_UNAVAILABLE`, `BUNDLE_FAILED`,
 * `HARNESS_INVALID`, engine codes of the scripts; later only `STORE_*` and `RUN_NULL_SHARE`.
 */
export async function runRollouts(asked: RunOptions): Promise<RunSummary> {
  const spec = groupSpec({ ...asked.group, n: asked.n ?? 1, labels: asked.labels ?? {} })
  await using begun = await begin(asked, spec)
  return await runAll(begun.options, begun.run, spec)
}

/** A run to which groups come as somebody asks for them. */
export interface OpenRun {
  readonly groups: Pick<RunGroups, 'add' | 'openRound' | 'cancel' | 'stopSlot' | 'advance' | 'end'>
  /** Throws `FORK_REFUSED` where a group that goes on from another rollout could not. */
  check(task: Task, spec: GroupSpec): Promise<void>
  /** What is a group's own of what its rollouts share. */
  ownOf(spec: GroupSpec): GroupWork['own']
  /** Resolves when no more groups come and all have settled, or the signal has aborted. Rejects with `STORE_*`, `RUN_NULL_SHARE`. */
  readonly ended: Promise<void>
}

/**
 * Opens a run that is in the catalogue, and works on its groups in the background until they are at their end. `tasks` are all that
 * there may be groups of. Throws what {@link runRollouts} throws before any rollout.
 */
export async function openRun(asked: RunOptions): Promise<OpenRun> {
  const begun = await begin(asked)
  const { options, run } = begun
  const groups = new RunGroups(run, {
    infraRetries: options.infraRetries ?? 2,
    places: placesOf(options),
    nodes: options.nodes ?? null,
    needs: options.needs ?? [],
    limit: await limitsOf(options).of(run.runId),
    forgets: true,
  })
  const ended = (async () => {
    await using _begun = begun
    try {
      await groups.run()
      await run.store.recorder.flush()
    } finally {
      groups.close()
    }
  })()
  return {
    groups,
    ownOf: (spec) => ownOf(options, run, spec),
    check: async (task, { fork, library }) => {
      if (library !== undefined && options.doneHere === false) {
        throw new PaddockError(
          'GROUP_INVALID',
          'The group cannot be: this coordinator leaves rollouts to nodes, which have no library.',
          { fix: 'Start the coordinator with --here.' },
        )
      }
      if (fork !== null) await requireFork(options, run, { fork, task })
    },
    ended,
  }
}

/** What of a run's parts is a group's own. */
export function ownOf(options: RunOptions, run: Pick<RunParts, 'labels'>, spec: GroupSpec): GroupWork['own'] {
  return {
    ...horizonOf(options, spec),
    fork: spec.fork,
    library: spec.library ?? null,
    labels: { ...run.labels, ...spec.labels, ...injectLabels(spec), ...forkLabels(spec.fork) },
  }
}

interface Begun extends AsyncDisposable {
  readonly options: RunOptions
  readonly run: RunParts
}

/** All that a run needs before its first rollout. */
export async function begin(asked: RunOptions, spec: GroupSpec = groupSpec({ n: 1 })): Promise<Begun> {
  // Without a box there is nothing to ask of the sandbox, which then need not even be there.
  const options = needsBox(asked.harness) ? asked : { ...asked, sandbox: null }
  const cancel = new AbortController()
  const stop = () => cancel.abort(options.signal?.reason)
  if (options.signal?.aborted === true) stop()
  options.signal?.addEventListener('abort', stop, { once: true })
  let listener: Listener | null = null
  const close = async (): Promise<void> => {
    options.signal?.removeEventListener('abort', stop)
    await listener?.close()
  }
  try {
    const prepared = await prepare(options, cancel.signal).catch((error: unknown) => {
      // The run is recorded all the same, with its rollouts as cancelled.
      if (cancel.signal.aborted) return nothingMade
      throw error
    })
    let origin = options.inferenceOrigin ?? null
    if (origin === null && options.harness.place === 'host') {
      listener = await options.proxy.listen({ host: '127.0.0.1', port: 0 })
      origin = listener.origin
    }
    const made = { ...prepared, inferenceOrigin: origin ?? '', signal: cancel.signal }
    return { options, run: partsOf(options, made, spec), [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}

function needsBox(harness: Harness): boolean {
  return harness.place === 'box' || harness.box === 'tools'
}

/** What is the same for all rollouts, and better said once than by each of them. */
async function prepare(options: RunOptions, signal: AbortSignal): Promise<Pick<RunParts, 'bundle' | 'agentHarnesses'>> {
  const { agentHarnesses: own = {}, proxy } = options
  const { harness, environment, sandbox, tasks, onProgress, scriptedEngine = null, doneHere = true } = options
  if (needsBox(harness) && (environment === null ? harness.place === 'box' : sandbox === null)) {
    throw new PaddockError('HARNESS_INVALID', `The harness ${harness.name} needs a box, and this run has none`, {
      fix: 'Run it on tasks of an environment, with a sandbox.',
    })
  }
  if (environment !== null && doneHere) {
    const hasEngine = (options.userEngine ?? null) !== null
    for (const task of tasks) {
      requireUser(environment, task, { harness, hasEngine })
      requireAgents(environment, task, { harness, own, policies: proxy.policies })
    }
  }
  if (signal.aborted) return nothingMade
  if (sandbox !== null && doneHere) await ready(sandbox)
  if (scriptedEngine !== null && environment !== null) {
    await postScripts({ control: scriptedEngine.control, environment, tasks, harness, signal })
  }
  const note = (line: string) => onProgress?.({ type: 'note', line })
  const bundleOf = async (one: Harness): Promise<BundleRef | null> => {
    if (one.place === 'host' || one.bundle === null || sandbox === null || !doneHere) return null
    return sandbox.ensureBundle(one.bundle, { signal, onProgress: note })
  }
  const agentHarnesses: Record<string, RunParts['agentHarnesses'][string]> = {}
  for (const [name, one] of Object.entries(own)) agentHarnesses[name] = { harness: one, bundle: await bundleOf(one) }
  return { bundle: await bundleOf(harness), agentHarnesses }
}

/** Of a run that was cancelled before anything was made. */
const nothingMade = { bundle: null, agentHarnesses: {} }

async function ready(sandbox: SandboxProvider): Promise<void> {
  const { problems } = await sandbox.probe()
  const fatal = problems.find(({ weight }) => weight === 'fatal')
  if (fatal !== undefined) throw new PaddockError('SANDBOX_UNAVAILABLE', fatal.what, { fix: fatal.fix })
  // What an earlier, killed Paddock left behind. Its failing is no reason not to run.
  await sandbox.sweep().catch(() => undefined)
}

function partsOf(
  options: RunOptions,
  made: Pick<RunParts, 'bundle' | 'agentHarnesses' | 'inferenceOrigin' | 'signal'>,
  group: GroupSpec,
): RunParts {
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
    ...horizonOf(options, group),
    labels: { ...options.labels, ...injectLabels(group), ...forkLabels(group.fork) },
    fork: group.fork,
    library: group.library ?? null,
    budgets: runBudgets(options.budgets ?? {}),
    gates: {
      live: new Gate(limits.agent + limits.boot),
      boot: new Gate(limits.boot),
      agent: new Gate(limits.agent),
      verify: new VerifyPlaces(limits.verify),
    },
    trainingStep: options.trainingStep ?? null,
    snapshotEvery: options.snapshotEvery ?? null,
    keepSnapshots: (options.keepSnapshots?.most ?? 0) > 0 ? (options.keepSnapshots ?? null) : null,
    policyPause: options.policyPause ?? null,
    elsewhere: options.elsewhere ?? null,
    judge: options.judge ?? null,
    userEngine: options.userEngine ?? null,
    shelving: options.shelving ?? null,
    atWeightUpdate: options.atWeightUpdate ?? 'continue',
    clock: options.clock ?? systemClock,
    newId: options.newId ?? newId,
    onProgress: onProgress ?? (() => undefined),
    imageReady: imagesOf(options, made.signal),
    leftovers: [],
  }
}

function horizonOf(
  { policy = {} }: RunOptions,
  { horizon, inject, fork }: GroupSpec,
): Pick<RunParts, 'policy' | 'horizon'> {
  const { inject: configured = [], ...rest } = policy
  // What a fork's parent saw is in the parent's own policy.
  const own = inject ?? (fork === null ? configured : [])
  return {
    policy: withHorizon(own.length === 0 ? rest : { ...rest, inject: own }, horizon),
    horizon: horizon !== null && (policy.budget?.maxCalls ?? horizon) >= horizon ? horizon : null,
  }
}

/** A horizon is a bound of calls; whichever is lower cuts. */
function withHorizon(policy: Partial<SessionPolicy>, horizon: number | null): Partial<SessionPolicy> {
  if (horizon === null) return policy
  const budget = policy.budget ?? { maxCalls: null, maxSampledTokens: null, maxWallMs: null }
  return { ...policy, budget: { ...budget, maxCalls: Math.min(horizon, budget.maxCalls ?? horizon) } }
}

function imagesOf({ environment, sandbox, onProgress }: RunOptions, signal: AbortSignal): RunParts['imageReady'] {
  const asked = new Map<string, Promise<ImageRef>>()
  return (task) => {
    if (environment === null || sandbox === null) return Promise.resolve(null)
    const known = asked.get(task.digest)
    if (known !== undefined) return known
    const note = (line: string) => onProgress?.({ type: 'note', line })
    const image = taskImage(sandbox, environment.box(task), { signal, onProgress: note })
    asked.set(task.digest, image)
    return image
  }
}

async function runAll(options: RunOptions, run: RunParts, spec: GroupSpec): Promise<RunSummary> {
  const { tasks, infraRetries = 2, chain } = options
  requireChain(options, spec)
  if (spec.fork !== null) for (const task of tasks) await requireFork(options, run, { fork: spec.fork, task })
  const known = await recordedGroups(options, run, spec)
  run.onProgress({ type: 'run', runId: run.runId, rollouts: tasks.length * (spec.n + spec.over) })
  const limit = await limitsOf(options).of(run.runId, options.maxNullShare)
  const { nodes = null, needs = [] } = options
  const work = { infraRetries, places: placesOf(options), nodes, needs, limit }
  const ended =
    chain === undefined
      ? await runGroups(run, await groupsOf(options, run, known), { ...work, spec })
      : await runChain(run, chain, { ...work, spec, tasks, known, ownOf: (one) => ownOf(options, run, one) })
  await run.store.recorder.flush()
  const refusal = run.signal.aborted ? null : (limit?.refusal(true) ?? null)
  if (refusal !== null) throw refusal
  const rollouts = ended.flatMap((one) => one.rollouts)
  return {
    runId: run.runId,
    cancelled: run.signal.aborted,
    rollouts,
    groups: ended.map(({ task, group, settled }) => ({ ...summariseGroup(group, task, rollouts), settled })),
    repeats: repeatsOf(rollouts),
    leftovers: run.leftovers,
  }
}

function limitsOf({ nullLimits, store }: RunOptions): NullLimits {
  return nullLimits ?? new NullLimits(store.catalogue)
}

/** Throws `FORK_REFUSED`. */
async function requireFork(
  { doneHere = true }: RunOptions,
  run: RunParts,
  { fork, task }: { readonly fork: ForkFrom; readonly task: Task },
): Promise<void> {
  const { end, labels } = await run.store.catalogue.rollout(fork.rolloutId)
  if (!doneHere && end === null) {
    throw new PaddockError(
      'FORK_REFUSED',
      `There is no fork there: rollout ${fork.rolloutId} has not ended, and nodes are given records of what has.`,
      { fix: 'Fork it when it has ended, or start the coordinator with --here.' },
    )
  }
  // What a node kept is on its machine.
  const isHere = doneHere && labels['node'] === undefined
  await requireForkable({ ...run, sandbox: isHere ? run.sandbox : null }, fork, task)
}

/** Rollouts that may have begun at once. */
function placesOf({ limits, doneHere = true }: RunOptions): number {
  if (!doneHere) return 0
  const { agent, boot } = { ...defaultLimits(), ...limits }
  return 2 * agent + boot
}

/** Records the run and its tasks. Of a run that is gone on with: the groups that there are. */
async function recordedGroups(options: RunOptions, run: RunParts, spec: GroupSpec): Promise<readonly GroupRecord[]> {
  const { tasks, resume = false } = options
  const { catalogue } = run.store
  for (const task of tasks) await catalogue.putTask(task)
  if (!resume) {
    await catalogue.putRun({
      id: run.runId,
      name: options.name ?? `${run.harness.name} on ${run.environment?.name ?? 'bare tasks'}`,
      createdAt: run.clock.now(),
      config: configOf(options, run, spec),
    })
  }
  return resume ? catalogue.groups(run.runId) : []
}

/** The groups in the order of the tasks. Those of a run that is gone on with are there, as far as it came. */
async function groupsOf(
  { tasks, promptVariant = 'default' }: RunOptions,
  run: RunParts,
  known: readonly GroupRecord[],
): Promise<readonly RunGroup[]> {
  const { catalogue } = run.store
  const groups: RunGroup[] = []
  for (const [at, task] of tasks.entries()) {
    const there = known[at]
    const identity = { runId: run.runId, taskDigest: task.digest, promptVariant }
    const group = there ?? { id: run.newId(), ...identity, createdAt: run.clock.now() }
    if (there === undefined) await catalogue.putGroup(group)
    groups.push({ task, group })
  }
  return groups
}

/** What of the options can be read back later; JSON. */
function configOf(
  { promptVariant, limits, infraRetries, maxNullShare, tasks, request }: RunOptions,
  run: RunParts,
  spec: GroupSpec,
): unknown {
  const { harness, environment, model, policy, labels, budgets, trainingStep, snapshotEvery, atWeightUpdate } = run
  return {
    harness: { name: harness.name, version: harness.version, dialect: harness.dialect, place: harness.place },
    environment: environment === null ? null : { name: environment.name, verifierVersion: environment.verifierVersion },
    tasks: tasks.map(({ digest }) => digest),
    model,
    n: spec.n,
    group: spec,
    promptVariant: promptVariant ?? 'default',
    trainingStep,
    policy,
    labels,
    budgets,
    limits: { ...defaultLimits(), ...limits },
    infraRetries: infraRetries ?? 2,
    ...(maxNullShare === undefined ? {} : { maxNullShare }),
    snapshotEvery,
    atWeightUpdate,
    ...(run.proxy.policies.length === 0 ? {} : { policies: run.proxy.policies }),
    ...(request === undefined ? {} : { request }),
  }
}
