import { prefetchTaskBox } from '../envs/index.ts'
import type { SessionStats } from '../proxy/index.ts'
import { AgentExpired, startAgentClock } from './agent-clock.ts'
import { startAgent } from './agent.ts'
import { type AttemptContext, stage } from './attempt-context.ts'
import type { Booted } from './boot.ts'
import type { EndFacts } from './judge-end.ts'
import { keepOutput } from './keep-output.ts'

/** What an agent did in its stage. */
export interface AgentPart extends Pick<EndFacts, 'fault' | 'expired' | 'report' | 'stats'> {
  readonly agentMs: number
}

/** Of an agent that was never started. */
export const neverBegan: AgentPart = {
  fault: null,
  expired: null,
  report: null,
  stats: { exhausted: null, lastError: null, taints: [] },
  agentMs: 0,
}

/** Runs the harness at a task on the agent's own clock. Never rejects for what became of it. */
export async function agentStage(context: AttemptContext, booted: Booted): Promise<AgentPart> {
  const { session, box, toolServer, turns, egress } = booted
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
  const signal = AbortSignal.any([run.signal, agentClock.signal, ...(toolServer === null ? [] : [toolServer.fault])])
  prefetchVerifier(context)
  using _held = run.policyPause?.watch(agentClock) ?? null
  // What only the set-up may reach is out of reach from now on.
  if (environment !== null) egress?.set(environment.box(member.task).network)
  if (box !== null) toolServer?.open(box)
  if (box !== null) turns?.open(box, agentClock)
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
      keep: (bytes) => run.store.blobs.put(bytes),
      atTurn: async () => turns?.atTurn(),
      wallMs: budgets.agentWallMs,
    })
    try {
      return { report: await agent.report, expired: null, fault: null }
    } finally {
      // Before the output is stored, so that our own work is on nobody's clock.
      agentClock.stop()
      await toolServer?.close()
      await keepOutput(run.store.blobs, agent.output, log.emit)
    }
  }).catch((error: unknown) => ({
    report: null,
    expired: error instanceof AgentExpired ? error.limit : null,
    fault: error instanceof AgentExpired ? null : error,
  }))
  return { ...part, stats: stats(), agentMs: agentClock.stop() }
}

/** While the agent works, the box of its verifier may already be made. */
function prefetchVerifier({ run, member, ending }: AttemptContext): void {
  const { environment, sandbox, runId } = run
  const needs = environment?.verifierBox(member.task) ?? null
  if (needs === null || sandbox === null) return
  const labels = { run: runId, role: 'verifier' as const }
  // Whoever needs the box makes its image, and learns why it cannot be made.
  const wish = sandbox.ensureImage(needs.image, { signal: run.signal }).then(
    (image) => prefetchTaskBox(sandbox, needs, image, { labels, hasModelPath: false }),
    () => null,
  )
  ending.add('prefetch', async () => (await wish)?.[Symbol.asyncDispose]())
}
