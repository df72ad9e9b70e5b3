import type { Id } from '../core/index.ts'
import {
  DeferredTools,
  type Environment,
  openTaskBox,
  prefetchTaskBox,
  setupNetwork,
  type TaskAgent,
  type Tool,
} from '../envs/index.ts'
import type { OpenedSession, OpenSession } from '../proxy/index.ts'
import { type Box, type EgressGate, egressGate, type ImageRef, type SandboxProvider } from '../sandbox/index.ts'
import { bundleRoot, bundleRootOf, type GoesOn } from './agent.ts'
import { AgentSessions, Floor } from './agents/index.ts'
import { type AttemptContext, boxLabels, stage, tellEgress } from './attempt-context.ts'
import type { Closing } from './closing.ts'
import { BoxCheck, type KeptBox } from './fork/box-check.ts'
import { usedLabel } from './fork/clock.ts'
import { type ForkPlace, placeOf } from './fork/place.ts'
import { type AgentRoutes, sandboxGateway } from './sandbox-gateway.ts'
import { CauseFinder, mcpHttp, ToolServer } from './mcp/index.ts'
import type { RunParts } from './run-parts.ts'
import { TurnSnapshots } from './turn-snapshots.ts'
import { type PutLibrary, putLibrary } from './library/index.ts'
import { type AttemptUser, openUser } from './user/index.ts'

/** Of a rollout whose box is a copy of one that had more than a copy holds: what that was. */
const withoutLabel = 'fork.without'

/** Box and session of an attempt. */
export interface Booted {
  readonly session: OpenedSession
  /** The same first, and those of the other agents of its task. */
  readonly sessions: AgentSessions
  /** Of a task of several agents: each with what it reaches. Null: the task has one. */
  readonly agents: readonly BootedAgent[] | null
  /** Whose turn it is; null where agents take none. */
  readonly floor: Floor | null
  readonly box: Box | null
  /** The environment's tools for a harness in the box; null where there are none or the harness is on the host. */
  readonly toolServer: ToolServer | null
  /** What a harness in the box is offered; null where it is on the host. */
  readonly tools: DeferredTools | null
  /** Who answers the agent between its turns; null: nobody does. */
  readonly user: AttemptUser | null
  /** Null where the box is not kept at its turns. */
  readonly turns: TurnSnapshots | null
  /** Of a replay: whether its files come to what its parent's were; null: nobody knows what those were. */
  readonly boxCheck: BoxCheck | null
  /** Of a fork whose harness does not ask for its past again; null: it does, or there is none. */
  readonly goesOn: GoesOn | null
  /** Time of its own that the agent had used where it goes on. */
  readonly usedMs: number
  /** Decides what the box may reach; null where it may never reach anything. */
  readonly egress: EgressGate | null
  /** Null: its run keeps none. */
  readonly library: PutLibrary | null
}

/** One of several agents. */
export interface BootedAgent {
  readonly about: TaskAgent
  readonly session: OpenedSession
  /** What a harness of it in the box is offered; null: nothing. */
  readonly toolServer: ToolServer | null
  readonly tools: DeferredTools | null
}

/** While this attempt waits for its place, its box may already be made. */
export function prefetch({ run, member }: AttemptContext, closing: Closing, image: ImageRef | null): void {
  const { environment, sandbox, harness } = run
  if (environment === null || sandbox === null || image === null) return
  // Its box is a copy of another one's.
  if (run.fork !== null && run.fork.way !== 'replay') return
  if (harness.place === 'host' && harness.box === 'none') return
  const wanted = prefetchTaskBox(sandbox, environment.box(member.task), image, {
    labels: { run: run.runId, role: 'agent' },
    hasModelPath: harness.place === 'box',
    ...mountsOf(run),
  })
  closing.add('prefetch', async () => wanted[Symbol.asyncDispose]())
}

function mountsOf({ harness, bundle, agentHarnesses }: RunParts): Pick<Parameters<typeof openTaskBox>[2], 'mounts'> {
  const own = Object.entries(agentHarnesses).flatMap(([agent, one]) =>
    one.bundle === null ? [] : [{ bundle: one.bundle, target: bundleRootOf(agent) }],
  )
  const mounts = [...(harness.place === 'host' || bundle === null ? [] : [{ bundle, target: bundleRoot }]), ...own]
  return mounts.length === 0 ? {} : { mounts }
}

/** Opens session and box and sets the task up, behind the gate for boots. What it opens is closed by `closing`. */
export async function boot(
  context: AttemptContext,
  closing: Closing,
  onSessions: (sessions: AgentSessions) => void,
): Promise<Booted> {
  const { run, member, log } = context
  const { harness, environment, proxy, sandbox, budgets } = run
  const { task } = member
  const place = await run.gates.boot.enter(run.signal, member.order)
  try {
    const booted = await stage(context, 'boot', budgets.bootMs, async (signal) => {
      const labels = { ...run.labels, harness: harness.name, task: task.name, environment: task.environment }
      const asked = { rolloutId: log.rolloutId, role: 'agent' as const, policy: run.policy, labels }
      const place = run.fork === null ? null : await placeOf(run, run.fork)
      const several = environment?.agents(task) ?? null
      const opened: OpenedSession[] = []
      const open = async (agent: TaskAgent | null): Promise<OpenedSession> => {
        const own = agent === null ? asked : { ...asked, policy: { ...asked.policy, name: agent.name } }
        const one = await proxy.openSession(place === null ? own : forked(place, own))
        opened.push(one)
        onSessions(new AgentSessions(proxy, opened))
        return one
      }
      const session = await open(several?.agents[0] ?? null)
      log.sessionId = session.session.id
      for (const agent of several?.agents.slice(1) ?? []) await open(agent)
      const sessions = new AgentSessions(proxy, opened)
      if (environment === null || sandbox === null) {
        return {
          session,
          sessions,
          agents: null,
          floor: null,
          box: null,
          toolServer: null,
          tools: null,
          user: null,
          turns: null,
          boxCheck: null,
          egress: null,
          goesOn: null,
          usedMs: 0,
          library: null,
        }
      }
      const user = await openUser(context, environment, closing)
      const offered = (one: OpenedSession, agent: TaskAgent | null) => {
        const isHost = run.harness.place === 'host'
        // A harness on the host runs the tools by itself.
        const tools = isHost && agent === null ? null : toolsOf(context, environment, user, agent)
        const isServed = tools !== null && !isHost
        return { tools, toolServer: isServed ? toolServerFor(context, environment, one, tools.tools) : null }
      }
      const agents =
        several?.agents.flatMap((about, at): BootedAgent[] => {
          const one = opened[at]
          return one === undefined ? [] : [{ about, session: one, ...offered(one, about) }]
        }) ?? null
      const floor = several?.by === 'turns' ? new Floor(several, log.emit) : null
      // One program that is all of the agents is offered all of the tools.
      const { tools, toolServer } = (floor === null ? null : agents?.[0]) ?? offered(session, null)
      const turns = turnsOf(context, session)
      const boxCheck = place?.kept == null ? null : boxCheckOf(context, { environment, sandbox, kept: place.kept })
      watchRequests(context, session, { turns, boxCheck })
      const image = place?.image ?? null
      const made = await openBox(context, { environment, sandbox, session, toolServer, agents, image, closing, signal })
      const { goesOn = null, usedMs = 0, without = [] } = place ?? {}
      if (without.length > 0) log.emit({ kind: 'label', name: withoutLabel, value: without.join(', ') })
      if (usedMs > 0) log.emit({ kind: 'label', name: usedLabel, value: String(usedMs) })
      return {
        session,
        sessions,
        agents,
        floor,
        toolServer,
        tools,
        user,
        turns,
        boxCheck,
        goesOn,
        usedMs,
        library: null,
        ...made,
      }
    })
    const { box } = booted
    if (box !== null && environment !== null) {
      await stage(context, 'setup', budgets.setupMs, (signal) =>
        environment.setup({
          task,
          attempt: context.attempt,
          box,
          signal,
          emit: log.emit,
          trainingStep: run.trainingStep,
        }),
      )
      if (run.library !== null) {
        const { library, store } = run
        const put = await stage(context, 'setup', budgets.setupMs, (signal) =>
          putLibrary(box, store.blobs, library, signal),
        )
        return { ...booted, library: put }
      }
    }
    return booted
  } finally {
    place[Symbol.dispose]()
  }
}

/** Sampled and read as its parent's was; budgets are the run's, and what the parent had used of them is used. */
function forked({ past }: ForkPlace, asked: OpenSession): OpenSession {
  const { policy } = past.log.session
  const inject = [...(policy.inject ?? []), ...(asked.policy?.inject ?? [])]
  const budget = asked.policy?.budget ?? policy.budget
  return { ...asked, policy: { ...policy, budget, ...(inject.length === 0 ? {} : { inject }) }, past }
}

/** The tools of the task, and that of its user; of one of several agents, those that it is offered. */
export function toolsOf(
  { member, log }: AttemptContext,
  environment: Environment,
  user: AttemptUser | null,
  agent: TaskAgent | null = null,
): DeferredTools {
  const own = environment.tools(member.task).filter(({ name }) => agent?.tools?.includes(name) ?? true)
  const tools = [...own, ...(user?.tool == null ? [] : [user.tool])]
  return new DeferredTools(tools, log.emit)
}

function toolServerFor(
  { run, member, log, attempt }: AttemptContext,
  environment: Environment,
  session: OpenedSession,
  all: readonly Tool[],
): ToolServer | null {
  const { task } = member
  // A harness has the like of the others by itself.
  const tools = all.filter((tool) => tool.nativeToHarness !== true)
  if (tools.length === 0) return null
  const { clock, store, proxy } = run
  const cause = new CauseFinder(tools.map(({ name }) => name))
  proxy.watchAnswers(session.session.id, (answer) => cause.note(answer))
  const serverInfo = { name: environment.name, version: environment.verifierVersion }
  return new ToolServer({
    serverInfo,
    task,
    attempt,
    tools,
    clock,
    cause,
    emit: log.emit,
    keep: (bytes) => store.blobs.put(bytes),
  })
}

async function openBox(
  { run, member, log }: AttemptContext,
  parts: {
    readonly environment: Environment
    readonly sandbox: SandboxProvider
    readonly session: OpenedSession
    readonly toolServer: ToolServer | null
    readonly agents: readonly BootedAgent[] | null
    /** What the box is a copy of; null: it is the task's. */
    readonly image: string | null
    readonly closing: Closing
    readonly signal: AbortSignal
  },
): Promise<Pick<Booted, 'egress'> & { readonly box: Box }> {
  const { sandbox, closing, signal } = parts
  const options = { labels: { ...boxLabels(run, log), role: 'agent' as const }, signal }
  const own = parts.environment.box(member.task)
  const needs = parts.image === null ? own : { ...own, image: { kind: 'reference' as const, reference: parts.image } }
  if (run.harness.place === 'host') {
    let egress: EgressGate | null = null
    const onGate = (gate: EgressGate) => void (egress = gate)
    const box = await openTaskBox(sandbox, needs, { ...options, onEgress: tellEgress(log), onGate })
    closing.add('box', () => box.destroy())
    return { box, egress }
  }
  const socket = await sandbox.openModelSocket()
  closing.add('socket', () => socket.close())
  const egress = egressGate({ policy: setupNetwork(needs), onAttempt: tellEgress(log) })
  closing.add('egress', async () => egress.close())
  const routesOf = (one: Pick<BootedAgent, 'session' | 'toolServer'>): AgentRoutes => ({
    session: run.proxy.sessionHandler(one.session.session.id),
    mcp: one.toolServer === null ? null : mcpHttp(one.toolServer),
  })
  const agents = new Map((parts.agents ?? []).map((one) => [one.about.name, routesOf(one)]))
  socket.serve(sandboxGateway({ ...routesOf(parts), agents, egress }))
  const box = await openTaskBox(sandbox, needs, {
    ...options,
    modelPath: { socket },
    ...mountsOf(run),
  })
  closing.add('box', () => box.destroy())
  return { box, egress }
}

function turnsOf({ run, log }: AttemptContext, session: OpenedSession): TurnSnapshots | null {
  if (run.snapshotEvery === null) return null
  let last: Id | null = null
  const { id } = session.session
  run.proxy.watchAnswers(id, ({ callId, callClass }) => {
    if (callClass === 'main') last = callId
  })
  const keep = run.keepSnapshots
  const transcript = run.harness.place === 'box' ? (run.harness.resumes?.transcript ?? null) : null
  const turns = new TurnSnapshots({ every: run.snapshotEvery, keep, transcript, lastCall: () => last, emit: log.emit })
  return turns
}

function boxCheckOf(
  { run, member, log }: AttemptContext,
  parts: { readonly environment: Environment; readonly sandbox: SandboxProvider; readonly kept: KeptBox },
): BoxCheck {
  const { environment, sandbox, kept } = parts
  return new BoxCheck({
    sandbox,
    kept,
    needs: environment.box(member.task),
    labels: { ...boxLabels(run, log), role: 'probe' },
    refuses: run.fork?.onDivergence !== 'branch',
    emit: log.emit,
  })
}

/** What looks at the box does so while its agent waits for an answer of its conversation. */
function watchRequests(
  { run }: AttemptContext,
  { session: { id } }: OpenedSession,
  { turns, boxCheck }: Pick<Booted, 'turns' | 'boxCheck'>,
): void {
  if (turns === null && boxCheck === null) return
  run.proxy.watchAnswers(id, ({ callClass }) => {
    if (callClass === 'main') boxCheck?.noteAnswer()
  })
  run.proxy.holdRequests(id, async (request) => {
    if (request.callClass === 'main') await boxCheck?.atRequest()
    await turns?.atRequest(request)
  })
}
