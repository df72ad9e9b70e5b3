import { type Clock, type EventBody, PaddockError, type Task } from '../core/index.ts'
import { agentUser, type Attempt, type Environment, type Tool } from '../envs/index.ts'
import type { Box, ExecResult } from '../sandbox/index.ts'
import type {
  AgentPlaces,
  BoxHarness,
  Harness,
  HarnessExit,
  HarnessLaunch,
  HarnessReport,
  HostHarness,
} from './harnesses/contract.ts'
import { toolPrograms, toolProgramsDirectory } from './mcp/index.ts'
import { OutputTail } from './output.ts'
import type { KeepBytes } from './pictures.ts'
import { agentPath } from './sandbox-gateway.ts'
import { againOf } from './user/index.ts'

/** Where bundles are mounted, and where a harness keeps its own files, inside a box. */
export const bundleRoot = '/opt/paddock/harness'
export const harnessHome = '/tmp/paddock-home'

/** Where one of several agents has the like of them. */
export function bundleRootOf(agent: string): string {
  return `${bundleRoot}-${agent}`
}

/** The box's socket authorises; clients insist on something in this place. */
export const placeholderKey = 'paddock'
/** Per stream. The box counts what is beyond and does not send it. */
const keptOutputBytes = 16 * 1024 * 1024
const eventTailBytes = 4096

/** What the agent stage works with. */
export interface AgentParts {
  readonly attempt: Attempt
  readonly task: Task
  readonly environment: Environment | null
  readonly model: string
  /** Null: the task has one agent, or one program is all of them. */
  readonly agent: OneAgent | null
  /** Where the agents of the task ask, seen from where the harness is. Absent: the task has one. */
  readonly agents?: AgentPlaces
  readonly box: Box | null
  /** Base URL and key of the session, for a harness on the host. */
  readonly host: { readonly baseUrl: string; readonly apiKey: string }
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly emit: (event: EventBody) => void
  readonly keep: KeepBytes
  readonly tools: readonly Tool[]
  /**
   * What that user replies to what a turn ended with: to `said`, or where that is left out to the last recorded words. Null: nobody does.
   */
  readonly hear: ((said?: string | null) => Promise<string | null>) | null
  /** What of its parent's session an agent goes on with; null: it begins at the beginning. */
  readonly goesOn: GoesOn | null
  /** Bound of the command in a box; the agent's clock ends it long before. */
  readonly wallMs: number
}

/** One of several agents that take turns. */
export interface OneAgent {
  readonly name: string
  readonly prompt: string
  readonly systemPrompt: string | null
  /** Its harness is not the run's. */
  readonly ownHarness: boolean
}

/** The request that a fork begins with, and what stands for it where the harness resumes its own session. */
export interface GoesOn {
  readonly body: Uint8Array
  /** Null: the harness is given the request itself. */
  readonly marker: string | null
}

/** A harness that was started. Output is there also when it was stopped. */
export interface RunningAgent {
  readonly report: Promise<HarnessReport>
  readonly output: { readonly stdout: OutputTail; readonly stderr: OutputTail }
}

/** Starts the harness. The report rejects with the signal's reason on abort and with infra faults (`BOX_DEAD`). */
export function startAgent(harness: Harness, parts: AgentParts): RunningAgent {
  const output = { stdout: new OutputTail(keptOutputBytes), stderr: new OutputTail(keptOutputBytes) }
  const report = harness.place === 'box' ? runInBox(harness, parts, output) : runOnHost(harness, parts, output)
  return { report, output }
}

function runOnHost(harness: HostHarness, parts: AgentParts, output: RunningAgent['output']): Promise<HarnessReport> {
  const { task, attempt, box, model, signal, emit, keep } = parts
  return harness.run({
    task,
    attempt,
    ...promptsOf(parts),
    ...parts.host,
    model,
    ...(parts.agents === undefined ? {} : { agents: parts.agents }),
    box,
    tools: box === null ? [] : parts.tools,
    hear: parts.hear,
    goesOn: parts.goesOn?.body ?? null,
    signal,
    emit,
    keep,
    onOutput: (stream, chunk) => output[stream].push(chunk),
  })
}

async function runInBox(
  harness: BoxHarness,
  parts: AgentParts,
  output: RunningAgent['output'],
): Promise<HarnessReport> {
  const { task, environment, box, model } = parts
  if (box === null || box.modelUrl === null || environment === null) {
    throw new PaddockError('HARNESS_INVALID', `${harness.name} runs in a box, and this run has none`, {
      fix: 'Run it on tasks of an environment.',
    })
  }
  const user = agentUser(environment.box(task), box)
  const tools = parts.tools.filter((tool) => tool.nativeToHarness !== true)
  const marker = parts.goesOn?.marker ?? null
  const resumes = marker === null ? null : (harness.resumes ?? null)
  const { agent } = parts
  const origin = agent === null ? box.modelUrl : `${box.modelUrl}${agentPath(agent.name)}`
  const home = agent === null ? harnessHome : `${harnessHome}-${agent.name}`
  const root = agent?.ownHarness === true ? bundleRootOf(agent.name) : bundleRoot
  const context = {
    task,
    ...promptsOf(parts),
    ...(marker === null ? {} : { prompt: marker }),
    origin,
    apiKey: placeholderKey,
    model,
    ...(parts.agents === undefined ? {} : { agents: parts.agents }),
    mcp: tools.length === 0 ? null : { name: environment.name, url: `${origin}/mcp` },
    bundlePath: harness.bundle === null ? null : root,
    home,
    workdir: box.workdir,
  }
  const asUser = user === null ? {} : { user }
  // Without a program of the image where that can be: it may have none.
  if (user === null) await box.putFiles(home, [])
  else await expectDone(box.exec({ command: ['mkdir', '-p', home], cwd: '/', ...asUser }, { signal: parts.signal }))
  // Programs on the PATH of a box that several agents share would be those of one of them.
  if (tools.length > 0 && agent === null) await box.putFiles(toolProgramsDirectory, toolPrograms(box.modelUrl, tools))
  const again = againOf(harness)
  let report = await oneTurn(
    harness,
    parts,
    { box, user, home, output, stale: resumes?.stale ?? [] },
    (resumes ?? harness).configure(context),
  )
  while (parts.hear !== null && again !== null && report.end === 'completed') {
    const prompt = await parts.hear()
    if (prompt === null) break
    const stale = harness.resumes?.stale ?? []
    report = await oneTurn(harness, parts, { box, user, home, output, stale }, again.configure({ ...context, prompt }))
  }
  return report
}

/** One run of the program. */
async function oneTurn(
  harness: BoxHarness,
  { task, emit, clock, signal, wallMs }: AgentParts,
  o: {
    readonly box: Box
    readonly user: string | null
    readonly home: string
    readonly output: RunningAgent['output']
    /** What an earlier process left below its home, which would keep this one from beginning. */
    readonly stale: readonly string[]
  },
  launch: HarnessLaunch,
): Promise<HarnessReport> {
  const { box, user, home, stale } = o
  const asUser = user === null ? {} : { user }
  if (stale.length > 0) {
    await expectDone(box.exec({ command: ['rm', '-rf', '--', ...stale], cwd: home, ...asUser }, { signal }))
  }
  if (launch.files.length > 0) await box.putFiles(home, launch.files)
  if (launch.files.length > 0 && box.profile === 'root' && user !== null) {
    // Put by root, but the harness writes beside its own files.
    await expectDone(box.exec({ command: ['chown', '-R', user, home], cwd: '/' }, { signal }))
  }
  // What it prints is read by itself, and kept with that of its other turns.
  const output = { stdout: new OutputTail(keptOutputBytes), stderr: new OutputTail(keptOutputBytes) }
  const print = (stream: 'stdout' | 'stderr') => (chunk: Uint8Array) => {
    output[stream].push(chunk)
    o.output[stream].push(chunk)
  }
  const startedAt = clock.monotonic()
  const tell = (end: Pick<ExecEvent, 'outcome' | 'exitCode' | 'signal' | 'truncatedBytes'>) => {
    emit({
      kind: 'exec',
      role: 'harness',
      command: typeof launch.command === 'string' ? launch.command : `${harness.name} ${harness.version}`,
      ...end,
      durationMs: Math.round(clock.monotonic() - startedAt),
      stdout: output.stdout.text(eventTailBytes),
      stderr: output.stderr.text(eventTailBytes),
      callId: null,
    })
  }
  let result: ExecResult
  try {
    result = await box.exec(
      {
        command: launch.command,
        env: { HOME: home, ...launch.env },
        cwd: box.workdir,
        ...asUser,
        ...(launch.stdin === null ? {} : { stdin: launch.stdin }),
        timeoutMs: wallMs,
        maxOutputBytes: keptOutputBytes,
        onStdout: print('stdout'),
        onStderr: print('stderr'),
      },
      { signal },
    )
  } catch (error) {
    if (signal.aborted) tell({ outcome: 'timed_out', exitCode: null, signal: null, truncatedBytes: 0 })
    throw error
  }
  const exit = exitOf(result, output)
  const truncatedBytes = result.truncated.stdout + result.truncated.stderr
  tell({ outcome: result.kind, exitCode: exit.exitCode, signal: exit.signal, truncatedBytes })
  if (result.kind === 'box_dead') throw boxDead(result.why)
  if (result.notStarted !== undefined) {
    const what = `${harness.name} cannot run in the image of task ${task.name}: ${result.notStarted}`
    throw new PaddockError('HARNESS_UNFIT', what)
  }
  return harness.parseResult(exit)
}

type ExecEvent = Extract<EventBody, { kind: 'exec' }>

function promptsOf({ task, environment, agent }: AgentParts): { prompt: string; systemPrompt: string | null } {
  if (agent !== null) return { prompt: agent.prompt, systemPrompt: agent.systemPrompt }
  if (environment === null) return { prompt: task.instruction, systemPrompt: null }
  return { prompt: environment.userPrompt(task), systemPrompt: environment.systemPrompt(task) }
}

function exitOf(result: ExecResult, output: RunningAgent['output']): HarnessExit {
  return {
    exitCode: result.kind === 'exited' ? result.code : null,
    signal: result.kind === 'signaled' ? result.signal : result.kind === 'timed_out' ? 'SIGTERM' : null,
    oom: result.kind === 'oom',
    stdout: output.stdout.text(),
    stderr: output.stderr.text(),
  }
}

async function expectDone(command: Promise<ExecResult>): Promise<void> {
  const result = await command
  if (result.kind === 'box_dead') throw boxDead(result.why)
  if (result.kind === 'exited' && result.code === 0) return
  const said = new TextDecoder().decode(result.stderr).trim().slice(-300)
  throw new PaddockError('BOX_COMMAND_REFUSED', `The harness's directory could not be made in the box: ${said}`)
}

function boxDead(why: { readonly why: string; readonly detail: string }): PaddockError {
  return new PaddockError('BOX_DEAD', `The box died under the harness (${why.why}): ${why.detail}`)
}
