import { type Id, PaddockError } from '../core/index.ts'
import { prefetchTaskBox } from '../envs/index.ts'
import type { OpenedSession, SessionStats } from '../proxy/index.ts'
import { AgentExpired, startAgentClock } from './agent-clock.ts'
import { type AgentParts, placeholderKey, type RunningAgent, startAgent } from './agent.ts'
import { byTurns } from './agents/index.ts'
import { stageMs } from './budgets.ts'
import { type AttemptContext, stage } from './attempt-context.ts'
import { type Booted, type BootedAgent, toolsOf } from './boot.ts'
import type { EndFacts } from './judge-end.ts'
import type { Place } from './place.ts'
import { ShelvableAgent } from './shelving/index.ts'
import { keepOutput } from './keep-output.ts'
import { lastSaid } from './last-said.ts'
import type { AgentPlaces, Harness } from './harnesses/contract.ts'
import type { ToolServer } from './mcp/index.ts'
import { agentPath } from './sandbox-gateway.ts'

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
  const { sessions, agents, box, turns, boxCheck, egress, goesOn, user } = booted
  const { run, member, log } = context
  const { budgets, environment, clock } = run
  const stats = (): SessionStats => sessions.stats()
  // Those of one program that is all of its agents are no other's.
  const toolServers = [...new Set([booted.toolServer, ...(agents ?? []).map(({ toolServer }) => toolServer)])].filter(
    (one) => one !== null,
  )
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
    ...[...toolServers, boxCheck].flatMap((one) => (one === null ? [] : [one.fault])),
  ])
  prefetchVerifier(context)
  using _held = run.policyPause?.watch(agentClock) ?? null
  using _shelvable = shelvable(context, booted, { agentClock, places, signal })
  // What only the set-up may reach is out of reach from now on.
  if (environment !== null) egress?.set(environment.box(member.task).network)
  if (box !== null) for (const one of toolServers) one.open(box)
  user?.conversation.open(agentClock)
  if (box !== null) turns?.open(box, agentClock)
  if (box !== null) boxCheck?.open(box, agentClock)
  const tools = booted.tools ?? (environment === null || box === null ? null : toolsOf(context, environment, user))
  // Of work that its agent did not wait for.
  let left: PaddockError | null = null
  const part = await stage({ ...context, run: { ...run, signal } }, 'agent', null, async (stageSignal) => {
    const started: RunningAgent[] = []
    const start: StartAgent = (harness, session, own) => {
      const agent = startAgent(harness, {
        task: member.task,
        attempt: context.attempt,
        environment,
        box,
        host: { baseUrl: session.baseUrl(run.inferenceOrigin), apiKey: session.key },
        clock,
        signal: stageSignal,
        emit: log.emit,
        keep: (bytes) => run.store.blobs.put(bytes),
        goesOn,
        wallMs: budgets.agentWallMs,
        ...own,
      })
      started.push(agent)
      return agent
    }
    try {
      const report = await (booted.floor === null
        ? start(run.harness, booted.session, {
            model: run.model,
            agent: null,
            ...placesOf(context, booted, null),
            tools: tools?.tools ?? [],
            hear: hearOf(context, booted, stageSignal),
          }).report
        : byTurns(booted.floor, agents ?? [], (agent, told, pass) =>
            startOne(context, booted, { agent, told, pass, start }),
          ))
      // One that stops because the run is cancelled was not done, whatever it reports.
      run.signal.throwIfAborted()
      return { report, expired: null, fault: null }
    } finally {
      // Before the output is stored, so that our own work is on nobody's clock.
      agentClock.stop()
      for (const one of toolServers) await one.close()
      for (const one of new Set([tools, ...(agents ?? []).map((agent) => agent.tools)]))
        left ??= (await one?.close()) ?? null
      for (const { output } of started) await keepOutput(run.store.blobs, output, log.emit)
    }
  }).catch((error: unknown) => ({
    report: null,
    expired: error instanceof AgentExpired ? error.limit : null,
    fault: error instanceof AgentExpired ? null : error,
  }))
  const after = stats()
  const fault = part.fault ?? left ?? (after.answered > 0 ? await lackOfAny(run, booted) : null)
  return { ...part, fault, stats: after, agentMs: agentClock.stop() }
}

type StartAgent = (
  harness: Harness,
  session: OpenedSession,
  own: Pick<AgentParts, 'model' | 'agent' | 'agents' | 'tools' | 'hear'>,
) => RunningAgent

/** Starts one of several agents that take turns. */
function startOne(
  context: AttemptContext,
  booted: Booted,
  {
    agent: { about, session, tools },
    told,
    pass,
    start,
  }: {
    readonly agent: BootedAgent
    readonly told: string
    readonly pass: (said: string | null) => Promise<string | null>
    readonly start: StartAgent
  },
): RunningAgent {
  const { run } = context
  const { name, prompt, systemPrompt = null } = about
  const own = run.agentHarnesses[name]
  return start(own?.harness ?? run.harness, session, {
    model: modelOf(run, name),
    agent: {
      name,
      prompt: told === '' ? prompt : `${prompt}\n\n${told}`,
      systemPrompt,
      ownHarness: own !== undefined,
    },
    ...placesOf(context, booted, name),
    tools: tools?.tools ?? [],
    hear: async (said) => pass(said ?? (await lastSaid(run.store.recorder, session.session.id))),
  })
}

function modelOf({ proxy, model }: AttemptContext['run'], agent: string): string {
  return proxy.policies.find(({ name }) => name === agent)?.model ?? model
}

/** Where the agents of the task ask; nothing where it has one. */
function placesOf(
  { run }: AttemptContext,
  { agents, box }: Booted,
  own: string | null,
): { readonly agents?: AgentPlaces } {
  if (agents === null) return {}
  const all = agents.map(({ about: { name }, session }) => {
    const isInBox = run.harness.place === 'box' && box?.modelUrl != null
    const place = isInBox
      ? { baseUrl: `${box.modelUrl}${agentPath(name)}/v1`, apiKey: placeholderKey }
      : { baseUrl: session.baseUrl(run.inferenceOrigin), apiKey: session.key }
    return { name, ...place, model: modelOf(run, name) }
  })
  return { agents: { own, all } }
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
  { session, sessions, box }: Booted,
  parts: Pick<ConstructorParameters<typeof ShelvableAgent>[0], 'agentClock' | 'places' | 'signal'>,
): Disposable | null {
  const { shelving, runId, atWeightUpdate } = run
  if (shelving === null) return null
  const { write } = log
  const sessionId = session.session.id
  const agent = new ShelvableAgent({
    ...parts,
    runId,
    sessionId,
    proxy: sessions.shelvable,
    box,
    atWeightUpdate,
    leave,
    write,
  })
  return shelving.watch(log.rolloutId, agent)
}

/** Calls of which it is looked whether they show the model a tool, from both ends of a session. */
const lookedAt = 16

/** The same of each agent. One program that is all of them may offer its tools where it likes. */
async function lackOfAny(
  run: AttemptContext['run'],
  { floor, agents, toolServer, session }: Booted,
): Promise<PaddockError | null> {
  if (agents === null) return lackOfTools(run, toolServer, session.session.id)
  if (floor === null) return null
  for (const { about, toolServer: own, session: of } of agents) {
    const harness = run.agentHarnesses[about.name]?.harness ?? run.harness
    if (run.proxy.sessionStats(of.session.id).answered === 0) continue
    const lack = await lackOfTools({ ...run, harness }, own, of.session.id)
    if (lack !== null) return lack
  }
  return null
}

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
