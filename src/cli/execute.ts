import { resolve } from 'node:path'
import { z } from 'zod'
import { type Config, type LoadedConfig, mergeRunBudgets, mergeRunGroup, mergeSessionConfig } from '../config/index.ts'
import { generatedPlace, type Id, PaddockError, type Task, present } from '../core/index.ts'
import type { Environment, EnvironmentRegistry } from '../envs/index.ts'
import {
  type FoundRun,
  type Harness,
  type NodeJob,
  openRun,
  openRunAtNode,
  recordBoxEvents,
  type RunAtNode,
  type RunOptions,
  type RunProgress,
  type RunSummary,
  type TrainerRun,
  runRollouts,
  followEngine,
  policyPause,
  trainerRunOf,
} from '../rollout/index.ts'
import type { SandboxProvider } from '../sandbox/index.ts'
import { type ResumeRequest, type RunRequest, runRequest, sessionPolicy } from '../server/index.ts'
import { type CatalogueReader, type ForkFrom, heldOutSplits, requireHere, type RunRecord } from '../trajectory/index.ts'
import { environmentsOf } from './environments.ts'
import { harnessFor } from './harnesses.ts'
import { logBoxEvents, logMissedPause, logProgress } from './observe.ts'
import type { Owner } from './owner.ts'
import { runSelector, selectedTasks } from './select-tasks.ts'
import { sandboxOf } from './sandbox.ts'

/** A run whose tasks are loaded and whose parts are found; nothing has been started. */
export interface PreparedRun {
  /** The run that this goes on with; null: a new one. */
  readonly resumes: Id | null
  /** Runs to the end. Closes its sandbox afterwards, also when it fails. */
  start(o: StartOptions): Promise<RunSummary>
}

export interface StartOptions {
  readonly owner: Owner
  readonly runId: Id
  readonly signal: AbortSignal
  readonly onProgress: (progress: RunProgress) => void
}

/**
 * Loads tasks, environment and harness. Throws `TASK_*`, `ENVIRONMENT_*`, `HARNESS_UNKNOWN`, `CONFIG_INVALID` before
 * anything runs.
 */
export async function prepareRun(loaded: LoadedConfig, request: RunRequest, signal: AbortSignal): Promise<PreparedRun> {
  const parts = await partsOf(loaded, request)
  const loadedTasks = await parts.environment.load(absolute(request.tasks), { signal })
  const listed = request.chain === null ? chosen(loadedTasks, request.only) : linksOf(loadedTasks, request.chain.links)
  const tasks = outOfQuarantine(listed, request.without)
  const { select } = request
  if (select === null) return prepared(loaded, parts, async () => tasks, null)
  const { selector, options } = await runSelector(loaded, select)
  const left = tasks.filter(({ split }) => !heldOutSplits.has(split))
  if (left.length === 0) {
    throw new PaddockError(
      'TASK_HELD_OUT',
      'None of the tasks may be chosen: nothing is remembered of held-out splits.',
      {
        fix: 'Leave --select out, or give tasks of another split.',
      },
    )
  }
  const choose = async (catalogue: Pick<CatalogueReader, 'memory'>): Promise<readonly Task[]> =>
    selectedTasks(left, { selector, options, select, harness: parts.harness.name, catalogue })
  return prepared(loaded, parts, choose, null)
}

/** Rollouts that go on from another one, on its recorded task. Throws `NOT_FOUND`, and what {@link prepareRun} throws. */
export async function prepareFork(
  loaded: LoadedConfig,
  catalogue: Pick<CatalogueReader, 'rollout' | 'task'>,
  request: RunRequest & { readonly fork: NonNullable<RunRequest['fork']> },
): Promise<PreparedRun> {
  const { taskDigest } = await catalogue.rollout(request.fork.rollout)
  const task = await catalogue.task(taskDigest)
  return prepared(loaded, await partsOf(loaded, request), async () => [task], null)
}

/** True for what {@link prepareFork} prepares. */
export function isFork(request: RunRequest): request is Parameters<typeof prepareFork>[2] {
  return request.fork !== null
}

/**
 * What the run of a rollout was asked for, for rollouts that go on from that one. Throws `FORK_REFUSED` where nobody recorded it.
 */
export function requestOfRun({ id, config }: RunRecord): RunRequest {
  const known = recorded.safeParse(config)
  // A rollout that goes on from one of a chain is none of its links.
  if (known.success) return { ...known.data.request, chain: null }
  const { own, harness, model, pin, labels } = trainerRunOf({ id, name: '', createdAt: 0, config })
  if (own === null) {
    throw new PaddockError('FORK_REFUSED', `Paddock did not do the rollouts of run ${id}, and cannot start them anew.`)
  }
  return requestOfTrainer({ own, harness, model, pin, labels })
}

function requestOfTrainer({ own, harness, model, pin, labels }: Own): RunRequest {
  const { needs = [], ...asked } = own
  return runRequest.parse({ ...asked, needs, harness, model, labels, policy: { pin } })
}

type Own = Pick<TrainerRun, 'harness' | 'model' | 'pin' | 'labels'> & { readonly own: NonNullable<TrainerRun['own']> }

/**
 * The run as it was asked for, over its recorded tasks. Throws `NOT_FOUND`, and `RUN_REFUSED` where what it would go on with
 * is no longer the same, or nobody recorded how it was asked for.
 */
export async function prepareResume(
  loaded: LoadedConfig,
  catalogue: Pick<CatalogueReader, 'run' | 'task' | 'elsewhere'>,
  { resume: runId, maxNullShare }: ResumeRequest,
): Promise<PreparedRun> {
  const run = await catalogue.run(runId)
  await requireHere(catalogue, runId)
  const config = recorded.safeParse(run.config)
  if (!config.success) {
    throw new PaddockError(
      'RUN_REFUSED',
      `the run ${runId} cannot be gone on with: it was not begun by \`paddock run\``,
    )
  }
  const { tasks, harness, environment } = config.data
  const request = { ...config.data.request, ...present({ maxNullShare }) }
  const parts = await partsOf(loaded, request)
  const same = (what: string, then: string, now: string): void => {
    if (then === now) return
    throw new PaddockError('RUN_REFUSED', `the run ${runId} was begun with ${what} ${then}, and this is ${now}`)
  }
  same('harness', `${harness.name} ${harness.version}`, `${parts.harness.name} ${parts.harness.version}`)
  const { name, verifierVersion } = parts.environment
  same('environment', `${environment.name} ${environment.verifierVersion}`, `${name} ${verifierVersion}`)
  const known = await Promise.all(tasks.map((digest) => catalogue.task(digest)))
  return prepared(loaded, parts, async () => known, runId)
}

/** What `runRollouts` keeps of a run's options, as far as it is needed to go on. */
const recorded = z.object({
  request: runRequest,
  tasks: z.array(z.string()),
  harness: z.object({ name: z.string(), version: z.string() }),
  environment: z.object({ name: z.string(), verifierVersion: z.string() }),
})

interface Parts {
  readonly environments: EnvironmentRegistry
  readonly environment: Environment
  readonly harness: Harness
  /** Of agents whose harness the configuration says. */
  readonly agentHarnesses: NonNullable<RunOptions['agentHarnesses']>
  readonly request: RunRequest
  readonly session: Config['session']
  readonly budgets: Config['run']['budgets']
  readonly group: Config['run']['group']
  readonly n: number
}

async function partsOf(loaded: LoadedConfig, request: RunRequest): Promise<Parts> {
  const { config } = loaded
  const { environment: also, trustTasks, publicNetwork } = request
  const environments = await environmentsOf(loaded, { also, trustTasks, publicNetwork })
  return {
    environments,
    environment: environments.get(request.environment),
    harness: await harnessFor(loaded, request.harness, request.command),
    agentHarnesses: await agentHarnessesOf(loaded),
    request,
    session: await mergeSessionConfig(config.session, request.policy, 'policy'),
    budgets: await mergeRunBudgets(config.run.budgets, request.budgets, 'budgets'),
    group: await mergeRunGroup(config.run.group, request.group, 'group'),
    n: request.n ?? config.run.n,
  }
}

async function agentHarnessesOf(loaded: LoadedConfig): Promise<Parts['agentHarnesses']> {
  const own: Record<string, Harness> = {}
  for (const [name, { harness }] of Object.entries(loaded.config.policies)) {
    if (harness !== null) own[name] = await harnessFor(loaded, harness, null)
  }
  return own
}

/** The tasks of a run, once its store is open. */
type FindTasks = (catalogue: Pick<CatalogueReader, 'memory'>) => Promise<readonly Task[]>

function prepared(loaded: LoadedConfig, parts: Parts, findTasks: FindTasks, resumes: Id | null): PreparedRun {
  const { environments, request, group, n } = parts
  return {
    resumes,
    start: async ({ owner, runId, signal: stop, onProgress }) => {
      const tasks = await findTasks(owner.store.catalogue)
      await using stand = await standOf(loaded, { owner, parts, onProgress })
      if (resumes !== null) await owner.left.leaveTo(resumes)
      const left = owner.left.verify({
        environments,
        sandbox: stand.sandbox,
        elsewhere: owner.elsewhere,
        judge: owner.judge,
        signal: stop,
        note: (line) => stand.tell({ type: 'note', line }),
      })
      const summary = await runRollouts({
        ...stand.options,
        tasks,
        n,
        runId,
        resume: resumes !== null,
        group: { ...groupOf(group), fork: forkOf(request) },
        ...(request.chain === null ? {} : { chain: request.chain }),
        signal: stop,
      })
      await left
      return summary
    },
  }
}

/** A run of a trainer whose groups come over time. Throws what {@link prepareRun} throws. */
export async function findTrainerRun(
  loaded: LoadedConfig,
  owner: Owner,
  asked: TrainerRun,
  signal: AbortSignal,
): Promise<FoundRun> {
  const { own, atWeightUpdate } = asked
  if (own === null) throw new PaddockError('INTERNAL', 'a run without tasks is not done here')
  const parts = await partsOf(loaded, requestOfTrainer({ ...asked, own }))
  const tasks = await parts.environment.load(absolute(own.tasks), { signal })
  return {
    tasks,
    begin: async (runId, stop) => {
      const publish = (progress: RunProgress): void => owner.progress(runId, progress)
      const stand = await standOf(loaded, { owner, parts, onProgress: publish })
      try {
        await owner.left.leaveTo(runId)
        const run = await openRun({
          ...stand.options,
          ...(atWeightUpdate === undefined ? {} : { atWeightUpdate }),
          tasks,
          runId,
          signal: AbortSignal.any([signal, stop]),
        })
        const ended = (async () => {
          await using _stand = stand
          await run.ended
        })()
        return { ...run, ended }
      } catch (error) {
        await stand[Symbol.asyncDispose]()
        throw error
      }
    },
  }
}

/**
 * A run of a coordinator, as a node does parts of it: with the node's own plugins, which have to be those of the coordinator. Throws
 * `NODE_UNFIT` where they are not, and what {@link prepareRun} throws.
 */
export async function openOrder(
  loaded: LoadedConfig,
  owner: Owner,
  o: { readonly order: NodeJob['order']; readonly tasks: string; readonly node: string },
): Promise<RunAtNode> {
  const { run, harness, environment } = o.order
  // Programs for this machine run where its own configuration trusts tasks, whatever the coordinator does.
  const asked = runRequest.parse(o.order.request)
  const tasksAt = generatedPlace(asked.tasks) === null ? o.tasks : asked.tasks
  const request = { ...asked, tasks: tasksAt, trustTasks: false }
  const parts = await partsOf(loaded, request)
  const same = (what: string, there: string, here: string): void => {
    if (there === here) return
    throw new PaddockError('NODE_UNFIT', `the ${what} of the coordinator is ${there}, and this node has ${here}`)
  }
  same('harness', `${harness.name} ${harness.version}`, `${parts.harness.name} ${parts.harness.version}`)
  const { name, verifierVersion } = parts.environment
  same('environment', `${environment.name} ${environment.verifierVersion}`, `${name} ${verifierVersion}`)
  const tasks = await parts.environment.load(tasksAt)
  const stand = await standOf(loaded, { owner, parts, onProgress: () => undefined })
  try {
    const labels = { ...stand.options.labels, node: o.node }
    const { nodes: _ours, ...options } = stand.options
    const opened = await openRunAtNode({ ...options, labels, tasks, runId: run.id }, run)
    return {
      work: (...job) => opened.work(...job),
      [Symbol.asyncDispose]: async () => {
        await opened[Symbol.asyncDispose]()
        await stand[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await stand[Symbol.asyncDispose]()
    throw error
  }
}

/** What a run stands on at its owner, beside its tasks: a sandbox of its own, which is closed with this. */
interface Stand extends AsyncDisposable {
  readonly sandbox: SandboxProvider
  readonly options: Omit<RunOptions, 'tasks'>
  readonly tell: (progress: RunProgress) => void
}

async function standOf(
  { config }: LoadedConfig,
  {
    owner,
    parts: { environment, harness, agentHarnesses, request, session, budgets, group, n },
    onProgress,
  }: { readonly owner: Owner; readonly parts: Parts; readonly onProgress: (progress: RunProgress) => void },
): Promise<Stand> {
  if (owner.proxy.policies.length > 0 && request.needs.length > 0) {
    throw new PaddockError(
      'USAGE',
      'Labels of nodes are needed, and nodes do rollouts of one policy: there are several',
      {
        fix: 'Leave `needs` out.',
      },
    )
  }
  const model = request.model ?? owner.engine.model
  const { keepSnapshots } = config.run
  const sandbox = await sandboxOf(
    config,
    logBoxEvents(owner.log.room('sandbox'), recordBoxEvents(owner.store.recorder)),
  )
  const logRun = logProgress(owner.log.room('rollout'))
  const pause = policyPause(sandbox)
  const follow = followEngine(pause, logMissedPause(owner.log.room('sandbox')))
  owner.engineListeners.add(follow)
  const tell = (progress: RunProgress): void => {
    logRun(progress)
    onProgress(progress)
  }
  const close = async (): Promise<void> => {
    owner.engineListeners.delete(follow)
    await sandbox.close()
  }
  try {
    if (needsBox(harness) && owner.doesRollouts) await requireDocker(sandbox)
  } catch (error) {
    await close()
    throw error
  }
  // Whole, so that whoever does a part of it, or goes on with it, needs no configuration of today.
  const whole = { ...request, model, n, policy: session, budgets, group }
  return {
    sandbox,
    tell,
    options: {
      request: whole,
      // A node knows one policy.
      ...(owner.proxy.policies.length > 0
        ? {}
        : {
            nodes: {
              jobs: owner.nodes,
              tasks: absolute(request.tasks),
              order: {
                request: { ...whole, environment: environment.name },
                harness: { name: harness.name, version: harness.version },
                environment: { name: environment.name, verifierVersion: environment.verifierVersion },
                trainingStep: request.step,
              },
            },
          }),
      nullLimits: owner.nullLimits,
      ...(request.maxNullShare === null ? {} : { maxNullShare: request.maxNullShare }),
      needs: request.needs,
      doneHere: owner.doesRollouts,
      elsewhere: owner.elsewhere,
      store: owner.store,
      proxy: owner.proxy,
      inferenceOrigin: owner.listener.origin,
      sandbox,
      environment,
      harness,
      agentHarnesses,
      model,
      policy: sessionPolicy(session, model),
      labels: request.labels,
      budgets: present(budgets),
      limits: present(config.run.limits),
      trainingStep: request.step,
      snapshotEvery: config.run.snapshotEvery,
      keepSnapshots: { most: keepSnapshots.most, mostBytes: keepSnapshots.mostMb * 2 ** 20 },
      policyPause: pause,
      judge: owner.judge,
      userEngine: owner.userEngine,
      shelving: owner.shelving,
      atWeightUpdate: config.run.atWeightUpdate,
      scriptedEngine: owner.engine.scripted === null ? null : { control: owner.engine.scripted.control },
      onProgress: tell,
      ...(request.name === null ? {} : { name: request.name }),
    },
    [Symbol.asyncDispose]: close,
  }
}

/** As the room of rollouts asks for it. */
function groupOf({ stopAt, inject, ...rest }: Config['run']['group']): NonNullable<RunOptions['group']> {
  return {
    ...rest,
    ...(inject === undefined ? {} : { inject }),
    ...(stopAt === null ? {} : { stopWhen: { kind: 'usable', count: stopAt } }),
  }
}

function forkOf({ fork }: RunRequest): ForkFrom | null {
  return fork === null
    ? null
    : { rolloutId: fork.rollout, callId: fork.call, way: fork.way, onDivergence: fork.onDivergence }
}

/** The tasks of a chain in its order. Throws `TASK_INVALID` for a name that none of them has. */
function linksOf(tasks: readonly Task[], links: readonly string[]): readonly Task[] {
  return links.map((name) => {
    const found = tasks.find((task) => task.name === name)
    if (found !== undefined) return found
    throw new PaddockError('TASK_INVALID', `no task is named ${name}, which is a link of the chain`, {
      fix: `Its tasks are ${tasks.map((task) => task.name).join(', ')}.`,
    })
  })
}

/** Of a path; generated tasks stand nowhere. */
function absolute(tasks: string): string {
  return generatedPlace(tasks) === null ? resolve(tasks) : tasks
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

/** Says at once what would otherwise fail in every rollout. */
async function requireDocker(sandbox: SandboxProvider): Promise<void> {
  const facts = await sandbox.probe()
  const fatal = facts.problems.find((problem) => problem.weight === 'fatal')
  if (fatal !== undefined) throw new PaddockError('SANDBOX_UNAVAILABLE', fatal.what, { fix: fatal.fix })
}
