import type { Stage } from '../core/index.ts'
import { type Artifacts, type Environment, openTaskBox, prefetchTaskBox } from '../envs/index.ts'
import type { OpenedSession, SessionStats } from '../proxy/index.ts'
import {
  type Box,
  type BoxLabels,
  type EgressAttempt,
  egressGate,
  type ImageRef,
  type SandboxProvider,
} from '../sandbox/index.ts'
import { AgentExpired, startAgentClock } from './agent-clock.ts'
import { bundleRoot, startAgent } from './agent.ts'
import { Closing } from './closing.ts'
import { boxDoor } from './door.ts'
import type { EndFacts } from './judge-end.ts'
import { keepOutput } from './keep-output.ts'
import { CauseFinder, mcpHttp, mcpTools, ToolDesk } from './mcp/index.ts'
import type { RolloutLog } from './rollout-log.ts'
import type { Member, RunParts } from './run-parts.ts'
import { inStage } from './stage.ts'

/** One attempt while it runs. */
export interface AttemptContext {
  readonly run: RunParts
  readonly member: Member
  readonly log: RolloutLog
  readonly onPhase: (stage: Stage, phase: 'start' | 'end') => void
}

/** What became of the agent's part of a rollout. */
export interface Attempted {
  readonly facts: EndFacts
  /** Null where nothing was collected: no box, no environment, or a fault. */
  readonly artifacts: Artifacts | null
  readonly calls: number
  readonly sampledTokens: number
  readonly taints: readonly string[]
  /** The agent's own clock. */
  readonly agentMs: number
}

/** Box and session of an attempt. */
interface Booted {
  readonly session: OpenedSession
  readonly box: Box | null
  /** The environment's tools for a harness in the box; null where there are none or the harness is on the host. */
  readonly desk: ToolDesk | null
}

interface AgentPart extends Pick<EndFacts, 'fault' | 'expired' | 'report' | 'stats'> {
  readonly agentMs: number
}

const neverBegan: AgentPart = {
  fault: null,
  expired: null,
  report: null,
  stats: { exhausted: null, lastError: null, taints: [] },
  agentMs: 0,
}

/**
 * Queue, boot, setup, agent, collect. Resolves for every fate, with everything closed that it opened; what could not be
 * closed is told to the run.
 */
export async function attemptTask(context: AttemptContext): Promise<Attempted> {
  const { run } = context
  const closing = new Closing()
  let agent = neverBegan
  let artifacts: Artifacts | null = null
  let session: OpenedSession | null = null
  try {
    await queued(context, closing)
    const booted = await boot(context, closing, (opened) => (session = opened))
    const { environment } = run
    const place = await run.gates.agent.enter(run.signal)
    try {
      agent = await agentStage(context, booted)
    } finally {
      place[Symbol.dispose]()
    }
    if (agent.fault === null && booted.box !== null && environment !== null) {
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

/** While this attempt waits for its place, its box may already be made. */
function prefetch({ run, member }: AttemptContext, closing: Closing, image: ImageRef | null): void {
  const { environment, sandbox, harness } = run
  if (environment === null || sandbox === null || image === null) return
  if (harness.place === 'host' && harness.box === 'none') return
  const wanted = prefetchTaskBox(sandbox, environment.box(member.task), image, {
    labels: { run: run.runId, role: 'agent' },
    hasModelPath: harness.place === 'box',
    ...mountsOf(run),
  })
  closing.add('prefetch', async () => wanted[Symbol.dispose]())
}

function mountsOf({ harness, bundle }: RunParts): Pick<Parameters<typeof openTaskBox>[2], 'mounts'> {
  return harness.place === 'host' || bundle === null ? {} : { mounts: [{ bundle, target: bundleRoot }] }
}

async function boot(
  context: AttemptContext,
  closing: Closing,
  onSession: (session: OpenedSession) => void,
): Promise<Booted> {
  const { run, member, log } = context
  const { harness, environment, proxy, sandbox, budgets } = run
  const { task } = member
  const place = await run.gates.boot.enter(run.signal)
  try {
    const booted = await stage(context, 'boot', budgets.bootMs, async (signal) => {
      const labels = { harness: harness.name, task: task.name, environment: task.environment }
      const session = await proxy.openSession({ rolloutId: log.rolloutId, role: 'agent', policy: run.policy, labels })
      log.sessionId = session.session.id
      onSession(session)
      if (environment === null || sandbox === null) return { session, box: null, desk: null }
      const desk = deskFor(context, environment)
      const box = await openBox(context, { environment, sandbox, session, desk, closing, signal })
      return { session, box, desk }
    })
    const { box } = booted
    if (box !== null && environment !== null) {
      await stage(context, 'setup', budgets.setupMs, (signal) =>
        environment.setup({ task, box, signal, emit: log.emit }),
      )
    }
    return booted
  } finally {
    place[Symbol.dispose]()
  }
}

function deskFor({ run, member, log }: AttemptContext, environment: Environment): ToolDesk | null {
  const { task } = member
  const tools = mcpTools(environment, task)
  if (run.harness.place === 'host' || tools.length === 0) return null
  const { clock, store } = run
  const cause = new CauseFinder(store.recorder, () => log.sessionId)
  const serverInfo = { name: environment.name, version: environment.verifierVersion }
  return new ToolDesk({ serverInfo, task, tools, clock, cause, emit: log.emit })
}

async function openBox(
  { run, member, log }: AttemptContext,
  parts: {
    readonly environment: Environment
    readonly sandbox: SandboxProvider
    readonly session: OpenedSession
    readonly desk: ToolDesk | null
    readonly closing: Closing
    readonly signal: AbortSignal
  },
): Promise<Box> {
  const { sandbox, closing, signal } = parts
  const options = { labels: { ...boxLabels(run, log), role: 'agent' as const }, signal }
  const needs = parts.environment.box(member.task)
  if (run.harness.place === 'host') {
    const box = await openTaskBox(sandbox, needs, { ...options, onEgress: tellEgress(log) })
    closing.add('box', () => box.destroy())
    return box
  }
  const slot = await sandbox.openSlot()
  closing.add('slot', () => slot.close())
  const egress = egressGate({ policy: needs.network, onAttempt: tellEgress(log) })
  closing.add('egress', async () => egress.close())
  const mcp = parts.desk === null ? null : mcpHttp(parts.desk)
  slot.serve(boxDoor({ session: run.proxy.sessionHandler(parts.session.session.id), mcp, egress }))
  const box = await openTaskBox(sandbox, needs, {
    ...options,
    modelPath: { slot },
    ...mountsOf(run),
  })
  closing.add('box', () => box.destroy())
  return box
}

async function agentStage(context: AttemptContext, { session, box, desk }: Booted): Promise<AgentPart> {
  const { run, member, log } = context
  const { proxy, budgets, environment, clock } = run
  const stats = (): SessionStats => proxy.sessionStats(session.session.id)
  const taskBudgetMs = environment?.box(member.task).agentTimeoutMs ?? null
  using agentClock = startAgentClock({
    budgetMs: taskBudgetMs ?? budgets.agentMs,
    wallMs: budgets.agentWallMs,
    clock,
    modelWaitMs: () => stats().modelWaitMs,
  })
  const signal = AbortSignal.any([run.signal, agentClock.signal, ...(desk === null ? [] : [desk.fault])])
  if (box !== null) desk?.open(box)
  const part = await stage({ ...context, run: { ...run, signal } }, 'agent', null, async (stageSignal) => {
    const agent = startAgent(run.harness, {
      task: member.task,
      environment,
      model: run.model,
      box,
      host: { baseUrl: session.baseUrl(run.inferenceOrigin), apiKey: session.key },
      clock,
      signal: stageSignal,
      emit: log.emit,
      wallMs: budgets.agentWallMs,
    })
    try {
      return { report: await agent.report, expired: null, fault: null }
    } finally {
      // Before the output is stored, so that our own work is on nobody's clock.
      agentClock.stop()
      await desk?.close()
      await keepOutput(run.store.blobs, agent.output, log.emit)
    }
  }).catch((error: unknown) => ({
    report: null,
    expired: error instanceof AgentExpired ? error.limit : null,
    fault: error instanceof AgentExpired ? null : error,
  }))
  return { ...part, stats: stats(), agentMs: agentClock.stop() }
}

function collect(
  { run, member, log, onPhase }: AttemptContext,
  environment: Environment,
  box: Box,
): Promise<Artifacts> {
  const { task } = member
  return stage({ run, member, log, onPhase }, 'collect', run.budgets.collectMs, (signal) =>
    environment.collect({ task, box, signal, emit: log.emit }),
  )
}

/** Runs a stage of this attempt, with its events and progress. */
export function stage<T>(
  { run, log, onPhase }: AttemptContext,
  name: Stage,
  budgetMs: number | null,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal, clock } = run
  return inStage({ stage: name, budgetMs, signal, clock, emit: log.emit, onPhase }, work)
}

/** Each try of a box to reach something is an event of its rollout. */
export function tellEgress(log: RolloutLog): (attempt: EgressAttempt) => void {
  return (attempt) => log.emit({ kind: 'egress', ...attempt })
}

export function boxLabels(run: RunParts, log: RolloutLog): Omit<BoxLabels, 'role'> {
  return { run: run.runId, rollout: log.rolloutId }
}

async function closed({ proxy, leftovers }: RunParts, { session }: OpenedSession): Promise<SessionStats> {
  try {
    await proxy.closeSession(session.id)
  } catch (error) {
    leftovers.push(`session ${session.id}: ${String(error)}`)
  }
  return proxy.sessionStats(session.id)
}
