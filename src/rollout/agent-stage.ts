import { type Id, PaddockError } from '../core/index.ts'
import { prefetchTaskBox } from '../envs/index.ts'
import type { SessionStats } from '../proxy/index.ts'
import { AgentExpired, startAgentClock } from './agent-clock.ts'
import { startAgent } from './agent.ts'
import { stageMs } from './budgets.ts'
import { type AttemptContext, stage } from './attempt-context.ts'
import { type Booted, toolsOf } from './boot.ts'
import type { EndFacts } from './judge-end.ts'
import type { Place } from './place.ts'
import { ShelvableAgent } from './shelving/index.ts'
import { keepOutput } from './keep-output.ts'
import { lastSaid } from './last-said.ts'
import type { ToolServer } from './mcp/index.ts'

/** What an agent did in its stage. */
export interface AgentPart extends Pick<EndFacts, 'fault' | 'expired' | 'report' | 'stats'> {
  readonly agentMs: number
}

/** Of an agent that was never started. */
export const neverBegan: AgentPart = {
  fault: null,
  expired: null,
  report: null,
  stats: { exhausted: null, lastError: null, taints: [], replaying: false },
  agentMs: 0,
}

/** Runs the harness at a task on the agent's own clock. Never rejects for what became of it. */
export async function agentStage(
  context: AttemptContext,
  booted: Booted,
  places: readonly Place[],
): Promise<AgentPart> {
  const { session, box, toolServer, turns, boxCheck, egress, goesOn, user } = booted
  const { run, member, log } = context
  const { proxy, budgets, environment, clock } = run
  const stats = (): SessionStats => proxy.sessionStats(session.session.id)
  const taskBudgetMs = environment?.box(member.task).agentTimeoutMs ?? null
  using agentClock = startAgentClock({
    budgetMs: Math.max(1, stageMs('agentMs', taskBudgetMs, budgets) - booted.usedMs),
    wallMs: budgets.agentWallMs,
    clock,
    modelWaitMs: () => stats().modelWaitMs,
  })
  const signal = AbortSignal.any([
    run.signal,
    agentClock.signal,
    ...[toolServer, boxCheck].flatMap((one) => (one === null ? [] : [one.fault])),
  ])
  prefetchVerifier(context)
  using _held = run.policyPause?.watch(agentClock) ?? null
  using _shelvable = shelvable(context, booted, { agentClock, places, signal })
  // What only the set-up may reach is out of reach from now on.
  if (environment !== null) egress?.set(environment.box(member.task).network)
  if (box !== null) toolServer?.open(box)
  user?.conversation.open(agentClock)
  if (box !== null) turns?.open(box, agentClock)
  if (box !== null) boxCheck?.open(box, agentClock)
  const tools = booted.tools ?? (environment === null || box === null ? null : toolsOf(context, environment, user))
  // Of work that its agent did not wait for.
  let left: PaddockError | null = null
  const part = await stage({ ...context, run: { ...run, signal } }, 'agent', null, async (stageSignal) => {
    const agent = startAgent(run.harness, {
      task: member.task,
      attempt: context.attempt,
      environment,
      model: run.model,
      box,
      host: { baseUrl: session.baseUrl(run.inferenceOrigin), apiKey: session.key },
      clock,
      signal: stageSignal,
      emit: log.emit,
      keep: (bytes) => run.store.blobs.put(bytes),
      tools: tools?.tools ?? [],
      hear: hearOf(context, booted, stageSignal),
      goesOn,
      wallMs: budgets.agentWallMs,
    })
    try {
      const report = await agent.report
      // One that stops because the run is cancelled was not done, whatever it reports.
      run.signal.throwIfAborted()
      return { report, expired: null, fault: null }
    } finally {
      // Before the output is stored, so that our own work is on nobody's clock.
      agentClock.stop()
      await toolServer?.close()
      left = (await tools?.close()) ?? null
      await keepOutput(run.store.blobs, agent.output, log.emit)
    }
  }).catch((error: unknown) => ({
    report: null,
    expired: error instanceof AgentExpired ? error.limit : null,
    fault: error instanceof AgentExpired ? null : error,
  }))
  const after = stats()
  const fault =
    part.fault ?? left ?? (after.answered > 0 ? await lackOfTools(run, toolServer, session.session.id) : null)
  return { ...part, fault, stats: after, agentMs: agentClock.stop() }
}

/** What the user replies to what a turn ended with; null: nobody is to be asked that. */
function hearOf(
  { run }: AttemptContext,
  { user, session }: Booted,
  signal: AbortSignal,
): ((said?: string | null) => Promise<string | null>) | null {
  if (user === null || user.tool !== null) return null
  return async (said) =>
    user.conversation.hear(said ?? (await lastSaid(run.store.recorder, session.session.id)), signal)
}

function shelvable(
  { run, log, leave }: AttemptContext,
  { session, box }: Booted,
  parts: Pick<ConstructorParameters<typeof ShelvableAgent>[0], 'agentClock' | 'places' | 'signal'>,
): Disposable | null {
  const { shelving, proxy, runId, atWeightUpdate } = run
  if (shelving === null) return null
  const { write } = log
  const sessionId = session.session.id
  const agent = new ShelvableAgent({ ...parts, runId, sessionId, proxy, box, atWeightUpdate, leave, write })
  return shelving.watch(log.rolloutId, agent)
}

/** Calls of which it is looked whether they show the model a tool, from both ends of a session. */
const lookedAt = 16

/** Why the agent worked without the tools that its task gives it: its harness never asked for them, or showed the model none. */
async function lackOfTools(
  { harness, store }: Pick<AttemptContext['run'], 'harness' | 'store'>,
  toolServer: ToolServer | null,
  sessionId: Id,
): Promise<PaddockError | null> {
  if (toolServer === null || harness.place !== 'box' || harness.listsTools !== true || toolServer.called) return null
  const lacking = (how: string): PaddockError => new PaddockError('HARNESS_TOOLS_UNLISTED', `${harness.name} ${how}`)
  if (!toolServer.reached)
    return lacking('never asked the MCP server for the tools of the task, and worked without them')
  const { calls } = await store.recorder.session(sessionId, { bodies: [] })
  const ids = calls.map(({ intent }) => intent.id)
  const bodies = [...new Set([...ids.slice(0, lookedAt), ...ids.slice(-lookedAt)])]
  const read = await store.recorder.session(sessionId, { bodies })
  // By name, wherever it stands: some harnesses tell the model of tools in words.
  const shows = read.calls.some(({ intent }) =>
    toolServer.names.some((name) => Buffer.from(intent.body).includes(name)),
  )
  return shows ? null : lacking('asked the MCP server for the tools of the task, and showed the model none of them')
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
