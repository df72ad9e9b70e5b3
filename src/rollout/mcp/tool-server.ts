import { type Clock, type EventBody, isPaddockError, newId, PaddockError, type Task } from '../../core/index.ts'
import type { Attempt, Tool, ToolOutcome } from '../../envs/index.ts'
import type { Box } from '../../sandbox/index.ts'
import { type KeepBytes, toldOf } from '../pictures.ts'
import { tellRewards } from '../rewards-so-far.ts'
import type { CauseFinder } from './cause.ts'
import { rpcCode, RpcError } from './protocol.ts'

/** Tool calls of one box at once; more would only wait for its cores. */
const maxRunning = 64
const eventTextLimit = 16_384

export interface ToolServerParts {
  /** Server name and version that clients are told. */
  readonly serverInfo: { readonly name: string; readonly version: string }
  readonly task: Task
  readonly attempt: Attempt
  readonly tools: readonly Tool[]
  readonly clock: Clock
  readonly emit: (event: EventBody) => void
  /** Stores the bytes of a picture that a tool gave. */
  readonly keep: KeepBytes
  /** Says which model call asked for a tool call. */
  readonly cause: CauseFinder
}

/**
 * Runs an environment's tools for the clients of a box, side by side, and writes each outcome as a `tool_result` event
 * before the client reads it. It works from {@link open} to {@link close}: the agent stage.
 */
export class ToolServer {
  readonly serverInfo: ToolServerParts['serverInfo']
  readonly #parts: ToolServerParts
  readonly #running = new Set<Promise<unknown>>()
  readonly #fault = new AbortController()
  #at: { readonly box: Box; readonly stop: AbortController } | null = null
  #reached = false
  #called = false

  constructor(parts: ToolServerParts) {
    this.#parts = parts
    this.serverInfo = parts.serverInfo
  }

  /** Fires with a PaddockError of family infra when a tool could not do its work: nothing can be said of the agent then. */
  get fault(): AbortSignal {
    return this.#fault.signal
  }

  open(box: Box): void {
    this.#at = { box, stop: new AbortController() }
    this.#reached = false
    this.#called = false
  }

  /** Whether a client was told the tools, or called one, since {@link open}. */
  get reached(): boolean {
    return this.#reached
  }

  /** Whether a client called a tool since {@link open}. */
  get called(): boolean {
    return this.#called
  }

  get names(): readonly string[] {
    return this.#parts.tools.map(({ name }) => name)
  }

  /** A fault of the server itself: the agent may lack tools that its task gives it. */
  broke(cause: unknown): void {
    this.#failed(
      new PaddockError('ENVIRONMENT_TOOL_FAILED', `The MCP server could not answer: ${String(cause)}`, { cause }),
    )
  }

  /** Takes no more calls, ends those that run, and resolves when they have. */
  async close(): Promise<void> {
    this.#at?.stop.abort(new Error('the agent stage is over'))
    this.#at = null
    await Promise.allSettled(this.#running)
  }

  listed(): readonly Readonly<Record<string, unknown>>[] {
    const told = this.#parts.tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
    this.#reached = true
    return told
  }

  /** Throws {@link RpcError} for a name that does not exist and while nothing can run; rejects when `signal` aborts. */
  async call(name: string, input: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ToolOutcome> {
    const tool = this.#parts.tools.find((one) => one.name === name)
    if (tool === undefined) throw new RpcError(rpcCode.invalidParams, `Unknown tool: ${name.slice(0, 100)}`)
    const at = this.#at
    if (at === null) throw new RpcError(rpcCode.internal, 'The tools are not at work.')
    if (this.#running.size >= maxRunning) {
      throw new RpcError(rpcCode.internal, `${maxRunning} tool calls are running already; wait for one of them.`)
    }
    this.#reached = true
    this.#called = true
    const work = this.#run(tool, input, { box: at.box, signal: AbortSignal.any([signal, at.stop.signal]) })
    this.#running.add(work)
    try {
      return await work
    } finally {
      this.#running.delete(work)
    }
  }

  async #run(
    tool: Tool,
    input: Readonly<Record<string, unknown>>,
    { box, signal }: { readonly box: Box; readonly signal: AbortSignal },
  ): Promise<ToolOutcome> {
    const { task, attempt, clock, emit, keep, cause } = this.#parts
    const startedAt = clock.monotonic()
    const from = cause.find(tool.name, input)
    const tell = async (outcome: ToolOutcome) => {
      const durationMs = Math.round(clock.monotonic() - startedAt)
      const told = await toldOf(outcome, keep)
      emit({
        kind: 'tool_result',
        callId: from?.callId ?? null,
        toolCallId: from?.toolCallId ?? newId(),
        tool: tool.name,
        status: outcome.status,
        durationMs,
        result: outcome.text.slice(0, eventTextLimit),
        ...told,
      })
      tellRewards(emit, outcome, from?.callId ?? null)
    }
    try {
      const outcome = await tool.run({ task, attempt, box, signal }, input)
      await tell(outcome)
      if (outcome.status === 'infra')
        this.#failed(
          outcome.fault ?? new PaddockError('BOX_DEAD', `The tool ${tool.name} could not run: ${outcome.text}`),
        )
      return outcome
    } catch (error) {
      if (signal.aborted) {
        await tell({ status: 'error', text: 'Cancelled.' })
        throw signal.reason
      }
      const known = isPaddockError(error) ? error.line() : String(error)
      const outcome: ToolOutcome = { status: 'infra', text: `The tool ${tool.name} failed by itself: ${known}` }
      await tell(outcome)
      this.#failed(new PaddockError('ENVIRONMENT_TOOL_FAILED', outcome.text, { cause: error }))
      return outcome
    }
  }

  #failed(error: PaddockError): void {
    this.#fault.abort(error)
  }
}
