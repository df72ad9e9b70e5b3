import type { Artifacts, Environment, TaskSteps } from '../envs/index.ts'
import type { OpenedSession, SessionStats } from '../proxy/index.ts'
import type { VerdictDraft } from '../reward/index.ts'
import type { Box } from '../sandbox/index.ts'
import { type AgentPart, agentStage, neverBegan } from './agent-stage.ts'
import { type AttemptContext, stage } from './attempt-context.ts'
import { boot, type Booted, prefetch } from './boot.ts'
import { Closing } from './closing.ts'
import { type EndFacts, judgeEnd } from './judge-end.ts'
import type { RunParts } from './run-parts.ts'
import { verifyDraft } from './verify.ts'

/** What became of the agent's part of a rollout. */
export interface Attempted {
  readonly facts: EndFacts
  /** Null where nothing was collected: no box, no environment, or a fault; and where the steps of the task were verified. */
  readonly artifacts: Artifacts | null
  /** Of a task of several steps, those that were verified. */
  readonly steps: { readonly of: TaskSteps; readonly drafts: readonly VerdictDraft[] } | null
  readonly calls: number
  readonly sampledTokens: number
  readonly taints: readonly string[]
  /** The agent's own clock. */
  readonly agentMs: number
}

/**
 * Queue, boot, setup, agent, collect. Resolves however it ends, with everything closed that it opened; what could not be
 * closed is told to the run.
 */
export async function attemptTask(context: AttemptContext): Promise<Attempted> {
  const { run } = context
  const closing = new Closing()
  let agent = neverBegan
  let artifacts: Artifacts | null = null
  let session: OpenedSession | null = null
  let of: TaskSteps | null = null
  const drafts: VerdictDraft[] = []
  try {
    await queued(context, closing)
    const booted = await boot(context, closing, (opened) => (session = opened))
    const { environment } = run
    const place = await run.gates.agent.enter(run.signal)
    try {
      of = environment?.steps(context.member.task) ?? null
      if (of === null) agent = await agentStage(context, booted)
      else agent = await throughSteps(context, booted, of, drafts)
    } finally {
      place[Symbol.dispose]()
    }
    if (of === null && agent.fault === null && booted.box !== null && environment !== null) {
      artifacts = await collect(context, environment, booted.box)
    }
  } catch (fault) {
    agent = { ...agent, fault }
  }
  // Closing the session commits what was in flight, which counts too.
  const stats = session === null ? null : await closed(run, session)
  run.leftovers.push(...(await closing.run()))
  return {
    facts: { ...agent, cancelled: run.signal.aborted },
    artifacts,
    steps: of === null ? null : { of, drafts },
    calls: stats?.calls ?? 0,
    sampledTokens: stats?.sampledTokens ?? 0,
    taints: [...new Set(agent.stats.taints)],
    agentMs: agent.agentMs,
  }
}

async function queued(context: AttemptContext, closing: Closing): Promise<void> {
  const { run, member, log } = context
  await stage(context, 'queue', null, async (signal) => {
    prefetch(context, closing, await run.imageReady(member.task))
    const place = await run.gates.live.enter(signal)
    closing.add('place', async () => place[Symbol.dispose]())
  })
  await run.store.catalogue.startRollout(log.rolloutId, run.clock.now())
}

/** One step after the other in one box, each verified before the next. Drafts come as they are known. */
async function throughSteps(
  context: AttemptContext,
  booted: Booted,
  steps: TaskSteps,
  drafts: VerdictDraft[],
): Promise<AgentPart> {
  const { run, log } = context
  const { environment, sandbox } = run
  const { box, session } = booted
  let agent = neverBegan
  if (environment === null || sandbox === null || box === null) return agent
  for (const [index, task] of steps.tasks.entries()) {
    const step = { ...context, member: { ...context.member, task } }
    await box.thaw()
    await stage(step, 'setup', run.budgets.setupMs, (signal) =>
      environment.setup({ task, box, signal, emit: log.emit, trainingStep: run.trainingStep }),
    )
    const part = await agentStage(step, booted)
    agent = { ...part, agentMs: agent.agentMs + part.agentMs }
    if (part.fault !== null || run.signal.aborted) return agent
    const artifacts = await collect(step, environment, box)
    const { end } = judgeEnd({ ...part, cancelled: false })
    const { calls } = run.proxy.sessionStats(session.session.id)
    const draft = await verifyDraft(step, { environment, sandbox, artifacts, end, calls })
    drafts.push(draft)
    if (end !== 'completed' || !steps.goesOn(index, draft)) return agent
  }
  return agent
}

function collect(context: AttemptContext, environment: Environment, box: Box): Promise<Artifacts> {
  const { run, member, log } = context
  const { task } = member
  return stage(context, 'collect', run.budgets.collectMs, (signal) =>
    environment.collect({ task, box, signal, emit: log.emit }),
  )
}

async function closed({ proxy, leftovers }: RunParts, { session }: OpenedSession): Promise<SessionStats> {
  try {
    await proxy.closeSession(session.id)
  } catch (error) {
    leftovers.push(`session ${session.id}: ${String(error)}`)
  }
  return proxy.sessionStats(session.id)
}
