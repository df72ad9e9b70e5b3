import { isPaddockError, type RolloutEnd, type StoredArtifact } from '../core/index.ts'
import { type Artifacts, type Environment, openTaskBox, type TaskSteps } from '../envs/index.ts'
import type { OpenedSession, SessionStats } from '../proxy/index.ts'
import type { VerdictDraft } from '../reward/index.ts'
import type { Box } from '../sandbox/index.ts'
import type { RolloutWork } from '../trajectory/index.ts'
import type { AgentSessions } from './agents/index.ts'
import { type AgentPart, agentStage, neverBegan } from './agent-stage.ts'
import { type AttemptContext, boxLabels, stage } from './attempt-context.ts'
import { boot, type Booted, prefetch } from './boot.ts'
import { Closing } from './closing.ts'
import { tellPrompt } from './fork/prompt.ts'
import { Stopped } from './group/stopped.ts'
import { judgeEnd } from './judge-end.ts'
import { lastSaid } from './last-said.ts'
import { takeLibrary, usedOf } from './library/index.ts'
import { Place } from './place.ts'
import { tellRewards } from './rewards-so-far.ts'
import type { RunParts } from './run-parts.ts'
import { talkOf } from './user/index.ts'
import { notSetUp, verifyDraft } from './verify.ts'
import { type Done, keepArtifacts } from './work.ts'

/** Label of a rollout whose tools said nothing again and again; its value is the share of such results. */
const emptyToolsLabel = 'empty_tool_results'

/** What became of the agent's part of a rollout. */
export interface Attempted {
  readonly end: RolloutEnd
  readonly detail: string
  /** What the stages threw; null for nothing. */
  readonly fault: unknown
  /** What the harness says that it failed of; null where it says nothing. */
  readonly harnessFault: string | null
  /** Null where the agent was not done: the rollout is over without a verdict. */
  readonly done: Done | null
  readonly calls: number
  readonly sampledTokens: number
  readonly taints: readonly string[]
  /** The agent's own clock. */
  readonly agentMs: number
}

/** What an agent left, as far as it came. */
interface Collected extends Pick<Done, 'unverified' | 'steps'> {
  readonly agent: AgentPart
  readonly artifacts: readonly StoredArtifact[]
}

/**
 * Queue, boot, setup, agent, collect. What the agent left is in the store when this resolves. Resolves however it ends, with
 * everything closed that it opened; what could not be closed is told to the run.
 */
export async function attemptTask(context: AttemptContext): Promise<Attempted> {
  const { run, log } = context
  const closing = new Closing()
  let agent = neverBegan
  let sessions: AgentSessions | null = null
  let collected: Collected | null = null
  try {
    const live = new Place(run.gates.live, context.member.order)
    await queued(context, closing, live)
    const booted = await boot(context, closing, (opened) => (sessions = opened))
    using place = new Place(run.gates.agent, context.member.order)
    await place.take(run.signal)
    const told = (part: AgentPart) => (agent = part)
    collected = await worked(context, { ...booted, places: [live, place] }, told)
  } catch (fault) {
    agent = { ...agent, fault }
  }
  // Closing the session commits what was in flight, which counts too, as does a fault that its harness was killed in.
  const stats = sessions === null ? null : await closed(run, sessions)
  const figures = {
    calls: stats?.calls ?? 0,
    sampledTokens: stats?.sampledTokens ?? 0,
    agentMs: agent.agentMs,
  }
  const harnessFault = agent.report?.fault ?? null
  const unanswered = stats?.taints ?? []
  const judged = planned(
    run,
    agent,
    judgeEnd({
      ...agent,
      stats: { ...agent.stats, taints: unanswered },
      cancelled: run.signal.aborted && agent.fault !== null,
    }),
  )
  // A reward for answers that are all unsound belongs to no policy.
  const taints = [...new Set([...unanswered, ...(stats?.unsound == null ? [] : [stats.unsound])])]
  const { catalogue } = run.store
  for (const cause of taints) await catalogue.taint(log.rolloutId, cause)
  const empty = log.emptyResults.share
  if (empty !== null) await catalogue.label(log.rolloutId, emptyToolsLabel, empty.toFixed(2))
  let done: Done | null = null
  if (collected !== null && judged.end !== 'infra' && judged.end !== 'cancelled') {
    const { unverified, steps, artifacts } = collected
    const work: RolloutWork = {
      ...judged,
      ...figures,
      at: run.clock.now(),
      fault: harnessFault,
      artifacts,
      shared: unverified?.artifacts.filesystem !== undefined,
      answered: unverified?.answered ?? (stats?.answered ?? 0) > 0,
      known: { unverified: unverified !== null, drafts: steps?.drafts ?? [] },
    }
    await catalogue.putWork(log.rolloutId, work)
    done = { work, unverified, steps }
  }
  // Boxes may take long to go: whoever kills this process meanwhile loses no work.
  run.leftovers.push(...(await closing.run()))
  return { ...judged, ...figures, fault: agent.fault, harnessFault, done, taints }
}

/** The end as it was meant: a horizon that was reached is no budget that ran out, and a group that stopped is not a run. */
function planned(
  { horizon, signal }: Pick<RunParts, 'horizon' | 'signal'>,
  { stats }: AgentPart,
  judged: Pick<Attempted, 'end' | 'detail'>,
): Pick<Attempted, 'end' | 'detail'> {
  if (judged.end === 'cancelled' && signal.reason instanceof Stopped) {
    return { ...judged, detail: signal.reason.message }
  }
  if (judged.end !== 'budget' || stats.exhausted !== 'maxCalls' || horizon === null) return judged
  return { end: 'horizon', detail: `${horizon} calls, as planned` }
}

async function queued(context: AttemptContext, closing: Closing, place: Place): Promise<void> {
  const { run, member, log } = context
  await stage(context, 'queue', null, async (signal) => {
    prefetch(context, closing, await run.imageReady(member.task))
    await place.take(signal)
    closing.add('place', async () => place[Symbol.dispose]())
  })
  await run.store.catalogue.startRollout(log.rolloutId, run.clock.now())
}

/** An attempt whose agent has its places. */
type AtWork = Booted & { readonly places: readonly Place[] }

/** The agent's part. Throws what kept the agent from being done, once it has told how far it came. */
async function worked(
  context: AttemptContext,
  booted: AtWork,
  told: (agent: AgentPart) => void,
): Promise<Collected | null> {
  const { run, member } = context
  const { environment, sandbox } = run
  const { box, session, sessions } = booted
  const of = environment?.steps(member.task) ?? null
  if (of === null || environment === null || sandbox === null || box === null) {
    const agent = await agentStage(context, booted, booted.places)
    told(agent)
    if (agent.fault !== null) return null
    if (box === null || environment === null) return { agent, artifacts: [], unverified: null, steps: null }
    const artifacts = await collect(context, environment, { ...booted, box, session })
    const answered = sessions.stats().answered > 0
    const unverified = { task: member.task, artifacts, answered }
    return { agent, unverified, artifacts: await keepArtifacts(run.store.blobs, artifacts), steps: null }
  }
  return throughSteps(context, { ...booted, box }, { of, environment }, told)
}

/**
 * One step after the other in one box, each verified before the next. One that cannot be set up because of what the agent
 * left counts 0 and is the last. The last one that is worked on is left to be
 * verified: nothing of the agent waits for that.
 */
async function throughSteps(
  context: AttemptContext,
  booted: AtWork & { readonly box: Box },
  { of, environment }: { readonly of: TaskSteps; readonly environment: Environment },
  told: (agent: AgentPart) => void,
): Promise<Collected | null> {
  const { run, log } = context
  const { box, session } = booted
  const drafts: VerdictDraft[] = []
  const artifacts: StoredArtifact[] = []
  let agent = neverBegan
  for (const [index, task] of of.tasks.entries()) {
    const step = { ...context, member: { ...context.member, task } }
    await box.thaw()
    try {
      await stage(step, 'setup', run.budgets.setupMs, (signal) =>
        environment.setup({
          task,
          attempt: context.attempt,
          box,
          signal,
          emit: log.emit,
          trainingStep: run.trainingStep,
        }),
      )
    } catch (error) {
      if (index === 0 || !isPaddockError(error) || !settingUp.has(error.code)) throw error
      if (!(await isSetUpWithout(step, environment, of.tasks.slice(0, index + 1)))) throw error
      drafts.push(notSetUp(environment, task, error.message))
      break
    }
    const before = answeredBy(run, session)
    const part = await agentStage(step, booted, booted.places)
    agent = { ...part, agentMs: agent.agentMs + part.agentMs }
    told(agent)
    if (part.fault !== null) return null
    const { end } = judgeEnd({ ...part, cancelled: false })
    const isLast = end !== 'completed' || index === of.tasks.length - 1
    // Taken once: that reads each file, as an agent that uses it does.
    const library = isLast ? booted.library : null
    const collected = await collect(step, environment, { box, session, user: null, floor: null, library })
    artifacts.push(...(await keepArtifacts(run.store.blobs, collected, task.name)))
    const unverified = { task, artifacts: collected, answered: answeredBy(run, session) > before }
    if (isLast) {
      return { agent, artifacts, unverified, steps: { of, drafts } }
    }
    run.signal.throwIfAborted()
    const draft = await verifyDraft(step, unverified)
    drafts.push(draft)
    if (draft.reward !== null) tellRewards(log.emit, { rewards: { [task.name]: draft.reward } }, null)
    if (!of.goesOn(index, draft)) break
  }
  return { agent, artifacts, unverified: null, steps: { of, drafts } }
}

/** How a set-up fails of what stands in a box. */
const settingUp = new Set(['BOX_FILES_UNFIT', 'TASK_NOT_READY'])

/** Whether steps can be set up one after the other in a box in which no agent has worked. */
async function isSetUpWithout(
  { run, log, attempt }: AttemptContext,
  environment: Environment,
  tasks: TaskSteps['tasks'],
): Promise<boolean> {
  const [first] = tasks
  if (run.sandbox === null || first === undefined) return false
  const { signal } = run
  try {
    await using box = await openTaskBox(run.sandbox, environment.box(first), {
      labels: { ...boxLabels(run, log), role: 'setup' },
      signal,
    })
    for (const task of tasks) {
      await environment.setup({ task, attempt, box, signal, emit: () => undefined, trainingStep: run.trainingStep })
    }
    return true
  } catch (error) {
    signal.throwIfAborted()
    if (isPaddockError(error)) return false
    throw error
  }
}

/** On its own budget alone: a run that is cancelled keeps what an agent that was done has left. */
function collect(
  context: AttemptContext,
  environment: Environment,
  {
    box,
    session,
    user,
    floor,
    library,
  }: { readonly box: Box; readonly session: OpenedSession } & Pick<Booted, 'user' | 'floor' | 'library'>,
): Promise<Artifacts> {
  const { run, member, log } = context
  const { task } = member
  const said = () => lastSaid(run.store.recorder, session.session.id)
  const lasting = { ...context, run: { ...run, signal: new AbortController().signal } }
  return stage(lasting, 'collect', run.budgets.collectMs, async (signal) => {
    const used = library === null ? null : await usedOf(box, library, signal)
    const artifacts = await environment.collect({
      task,
      attempt: context.attempt,
      box,
      signal,
      emit: log.emit,
      lastSaid: said,
      ...(user === null ? {} : { talk: () => talkOf(user, said) }),
      ...(floor === null ? {} : { talk: () => Promise.resolve(floor.talk) }),
    })
    if (library !== null) log.emit(await takeLibrary(box, run.store.blobs, library, used))
    return artifacts
  })
}

function answeredBy({ proxy }: RunParts, { session }: OpenedSession): number {
  return proxy.sessionStats(session.id).answered
}

async function closed(run: RunParts, sessions: AgentSessions): Promise<SessionStats> {
  const { proxy, leftovers, fork } = run
  for (const { session } of sessions.all) {
    if (fork !== null) await tellPrompt(run.store, { fork, sessionId: session.id, at: run.clock.now() })
    try {
      await proxy.closeSession(session.id)
    } catch (error) {
      leftovers.push(`session ${session.id}: ${String(error)}`)
    }
  }
  return sessions.stats()
}
