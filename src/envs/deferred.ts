import { z } from 'zod'
import { type EventBody, PaddockError } from '../core/index.ts'
import type { Tool, ToolContext, ToolOutcome } from './contract.ts'
import type { Deferral } from './deferral.ts'
import { defineTool } from './tool.ts'

export const getResultName = 'get_result'

/** Results of one attempt that may be outstanding at once. */
const maxOpen = 64
const maxWaitSec = 60

interface Job {
  readonly handle: string
  readonly tool: string
  readonly how: Deferral
  /** Of all calls of the attempt, which one asked for it. */
  readonly askedAt: number
  readonly askedMs: number
  /** Null while its work is not done. */
  outcome: ToolOutcome | null
  readonly settled: Promise<void>
}

type Came = Extract<EventBody, { kind: 'deferred_result' }>['came']

/**
 * The tools of one attempt, some of whose calls are answered later: such a call gives a handle, and what it came to is asked for, or told
 * behind what a later call says. Each result, whether it came or not, is an event `deferred_result` with how late that was.
 */
export class DeferredTools {
  readonly tools: readonly Tool[]
  readonly #emit: (event: EventBody) => void
  #stop = new AbortController()
  readonly #open = new Map<string, Job>()
  readonly #closed = new Set<string>()
  #calls = 0
  #made = 0

  /** Throws `ENVIRONMENT_INVALID` for a tool of the environment that has the name of ours. */
  constructor(tools: readonly Tool[], emit: (event: EventBody) => void) {
    this.#emit = emit
    if (!tools.some(({ deferred }) => deferred !== undefined)) {
      this.tools = tools
      return
    }
    if (tools.some(({ name }) => name === getResultName)) {
      throw new PaddockError('ENVIRONMENT_INVALID', `A tool is named ${getResultName}, and another one answers later`, {
        fix: 'Rename the tool: it is how results are asked for.',
      })
    }
    this.tools = [...tools.map((tool) => this.#counted(tool)), this.#counted(this.#getResult())]
  }

  /** Ends the work that goes on, and tells what never came; a further stage may begin. Returns the fault of such work, of which nobody heard. */
  async close(): Promise<PaddockError | null> {
    this.#stop.abort(new Error('the agent stage is over'))
    const left = [...this.#open.values()]
    await Promise.allSettled(left.map(({ settled }) => settled))
    const failed = left.find(({ outcome }) => outcome?.status === 'infra')?.outcome ?? null
    for (const job of left) this.#end(job, 'unread', job.outcome?.status ?? null)
    this.#stop = new AbortController()
    return failed === null
      ? null
      : (failed.fault ?? new PaddockError('BOX_DEAD', `A tool could not run: ${failed.text}`))
  }

  /** Each call counts, and what is told comes behind its answer. */
  #counted(tool: Tool): Tool {
    return {
      ...tool,
      run: async (context, input) => {
        this.#calls += 1
        const at = this.#calls
        const outcome = await this.#answered(tool, { context, input, at })
        return this.#withTold(outcome, at)
      },
    }
  }

  async #answered(
    tool: Tool,
    { context, input, at }: { readonly context: ToolContext; readonly input: unknown; readonly at: number },
  ): Promise<ToolOutcome> {
    const how = tool.input.safeParse(input).success ? (tool.deferred?.(context, input) ?? null) : null
    if (how === null) return tool.run(context, input)
    if (this.#open.size >= maxOpen) {
      return { status: 'error', text: `${maxOpen} results are outstanding already; wait for one of them.` }
    }
    this.#made += 1
    const handle = `job-${this.#made}`
    const job: Job = {
      handle,
      tool: tool.name,
      how,
      askedAt: at,
      askedMs: performance.now(),
      outcome: null,
      settled: how.lost === true ? Promise.resolve() : this.#work(handle, tool, { context, input, how }),
    }
    this.#open.set(handle, job)
    const text =
      how.comes === 'asked'
        ? `Begun as ${handle}. Ask for its result with ${getResultName}.`
        : `Begun as ${handle}. Its result will be told with a later answer.`
    return { status: 'ok', text, facts: { handle } }
  }

  async #work(
    handle: string,
    tool: Tool,
    { context, input, how }: { readonly context: ToolContext; readonly input: unknown; readonly how: Deferral },
  ): Promise<void> {
    const late = new AbortController()
    const stop = this.#stop.signal
    const timer = how.withinMs === undefined ? null : setTimeout(() => late.abort(new Error('late')), how.withinMs)
    // Not the call's own signal: that one ends with its answer.
    const signal = AbortSignal.any([stop, late.signal])
    const outcome = await tool.run({ ...context, signal }, input).catch((error: unknown): ToolOutcome | null => {
      if (late.signal.aborted) return expired(handle)
      if (stop.aborted) return null
      const fault = new PaddockError(
        'ENVIRONMENT_TOOL_FAILED',
        `The tool ${tool.name} failed by itself: ${String(error)}`,
      )
      return { status: 'infra', text: fault.line(), fault }
    })
    if (timer !== null) clearTimeout(timer)
    const job = this.#open.get(handle)
    if (job !== undefined) job.outcome = late.signal.aborted ? expired(handle) : outcome
  }

  #isDue(job: Job, at: number): boolean {
    return isTime(job, at) && (job.how.lost === true || job.outcome !== null)
  }

  /** What a due result says. It is not outstanding any more. */
  #take(job: Job, at: number, came: 'asked' | 'told'): ToolOutcome {
    const outcome: ToolOutcome =
      job.how.lost === true
        ? { status: 'timeout', text: `The result of ${job.handle} is lost.`, facts: { lost: 1 } }
        : (job.outcome ?? expired(job.handle))
    const how: Came = outcome.facts?.['lost'] === 1 ? 'lost' : outcome.facts?.['expired'] === 1 ? 'expired' : came
    this.#end(job, how, outcome.status, at)
    return outcome
  }

  #end(job: Job, came: Came, status: ToolOutcome['status'] | null, at = this.#calls): void {
    this.#open.delete(job.handle)
    this.#closed.add(job.handle)
    this.#emit({
      kind: 'deferred_result',
      handle: job.handle,
      tool: job.tool,
      came,
      status,
      lateCalls: at - job.askedAt,
      lateMs: Math.round(performance.now() - job.askedMs),
    })
  }

  #withTold(outcome: ToolOutcome, at: number): ToolOutcome {
    const due = [...this.#open.values()].filter(
      (job) =>
        job.askedAt < at && (job.outcome?.status === 'infra' || (job.how.comes === 'told' && this.#isDue(job, at))),
    )
    return due.reduce<ToolOutcome>((before, job) => {
      const result = this.#take(job, at, 'told')
      // Nothing can be said of the agent, whatever the call itself came to.
      if (result.status === 'infra' || before.status === 'infra') return before.status === 'infra' ? before : result
      const pictures = [...(before.pictures ?? []), ...(result.pictures ?? [])]
      return {
        ...before,
        text: `${before.text}\n\n[${job.handle}, ${job.tool}: ${result.status}]\n${result.text}`,
        ...(pictures.length === 0 ? {} : { pictures }),
      }
    }, outcome)
  }

  #getResult(): Tool {
    return defineTool({
      name: getResultName,
      description: 'Gives the result of a call that was answered with a handle, once it is there.',
      input: z.object({
        handle: z.string().describe('Such as job-1.'),
        wait_sec: z.number().min(0).max(maxWaitSec).default(0).describe('So long its work is waited for.'),
      }),
      run: async ({ signal }, { handle, wait_sec }) => {
        const job = this.#open.get(handle)
        if (job === undefined) {
          const what = this.#closed.has(handle) ? `${handle} was answered already.` : `There is no ${handle}.`
          return { status: 'error', text: what }
        }
        if (job.how.comes === 'told') return { status: 'error', text: `${handle} is told with a later answer.` }
        const at = this.#calls
        if (wait_sec > 0 && isTime(job, at)) await within(wait_sec * 1000, job.settled, signal)
        if (!this.#open.has(handle)) return { status: 'error', text: `${handle} was answered already.` }
        if (!this.#isDue(job, at)) return { status: 'ok', text: `${handle} is not done yet.`, facts: { pending: 1 } }
        const outcome = this.#take(job, at, 'asked')
        return { ...outcome, facts: { ...outcome.facts, handle } }
      },
    })
  }
}

/** Whether so many calls were made. */
function isTime({ how, askedAt }: Job, at: number): boolean {
  return how.after === 'done' || at - askedAt >= how.after.calls
}

function expired(handle: string): ToolOutcome {
  return { status: 'timeout', text: `${handle} took too long and was given up.`, facts: { expired: 1 } }
}

/** Resolves when the work is done or the time is over. Rejects with the signal's reason. */
async function within(ms: number, work: Promise<void>, signal: AbortSignal): Promise<void> {
  const over = Promise.withResolvers<void>()
  const timer = setTimeout(over.resolve, ms)
  const stop = (): void => over.reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    await Promise.race([work, over.promise])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}
