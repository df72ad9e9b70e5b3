import { newId, PaddockError, type Task } from '../../core/index.ts'
import type { VerdictDraft } from '../../reward/index.ts'
import type { Box, SandboxProvider } from '../../sandbox/index.ts'
import { openSetUpBox } from '../attempt.ts'
import type { Attempt, Environment, Tool, ToolOutcome } from '../contract.ts'
import { verifierBoxes } from '../open-box.ts'
import { actionSchema, type Listed, listed, type Observation, Refused, resetSchema, resultOf } from './protocol.ts'

/** The tool with which an agent of elsewhere hands its work in. */
export const submitTool: Listed = {
  name: 'submit',
  description:
    'Hands your work in: it is verified, and the episode ends. `text` is what you say at last, where the task asks for words.',
  input_schema: { type: 'object', properties: { text: { type: 'string' } } },
}

/** Beyond the task's own budget, for the boxes around its tests. */
const marginMs = 120_000
const verifyMs = 600_000

export interface Hosted {
  readonly environment: Environment
  readonly tasks: readonly Task[]
  readonly sandbox: SandboxProvider
  /** The task of a reset that names none. */
  readonly next: () => Task
}

interface Episode {
  readonly id: string
  readonly task: Task
  readonly attempt: Attempt
  readonly box: Box
  steps: number
  done: boolean
}

/**
 * What one client has: an episode at a time, which is a box with a task set up in it, the environment's tools, and its verdict. It is asked one
 * thing after the other. Rejects with {@link Refused} for what a client may correct; whatever else it rejects with is a fault of ours.
 */
export class HostedSession implements AsyncDisposable {
  readonly id = newId()
  readonly #o: Hosted
  readonly #ended = new AbortController()
  #episode: Episode | null = null
  #last: Promise<unknown> = Promise.resolve()

  constructor(o: Hosted) {
    this.#o = o
  }

  reset(given: unknown): Promise<Observation> {
    return this.#next(async () => {
      const task = this.#taskOf(given)
      await this.#over()
      const attempt = { id: newId() }
      const { environment, sandbox } = this.#o
      const box = await openSetUpBox({ environment, sandbox, task, signal: this.#ended.signal }, attempt, 'agent')
      this.#episode = { id: attempt.id, task, attempt, box, steps: 0, done: false }
      const observation = {
        task: task.name,
        instruction: environment.userPrompt(task),
        system_prompt: environment.systemPrompt(task),
      }
      return { observation, reward: null, done: false }
    })
  }

  step(action: unknown): Promise<Observation> {
    return this.#next(async () => {
      const read = actionSchema.safeParse(typed(action))
      if (!read.success)
        throw new Refused('VALIDATION_ERROR', 'An action is {"type": "call_tool", "tool_name", "arguments"}.')
      if (read.data.type === 'list_tools') {
        return { observation: { tools: this.#listed() }, reward: null, done: this.#episode?.done ?? false }
      }
      return this.#call(read.data.tool_name, read.data.arguments)
    })
  }

  /** The tools of the episode's task, or of the first task. */
  tools(): Promise<readonly Listed[]> {
    return this.#next(async () => this.#listed())
  }

  state(): Promise<Readonly<Record<string, unknown>>> {
    return this.#next(async () => ({
      episode_id: this.#episode?.id ?? null,
      step_count: this.#episode?.steps ?? 0,
      task: this.#episode?.task.name ?? null,
    }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error('The session has ended.'))
    await this.#last
    await this.#over()
  }

  async #call(name: string, args: Readonly<Record<string, unknown>>): Promise<Observation> {
    const episode = this.#episode
    if (episode === null) throw new Refused('VALIDATION_ERROR', 'There is no episode. Reset first.')
    if (episode.done) return failed(name, 'execution_error', 'The episode is over.', true)
    episode.steps += 1
    if (name === submitTool.name) return this.#submit(episode, args['text'])
    const tool = this.#toolNamed(name, episode.task)
    if (tool === null) return failed(name, 'tool_not_found', `There is no tool ${name}.`, false)
    const { task, attempt, box } = episode
    const outcome = await tool.run({ task, attempt, box, signal: this.#ended.signal }, args)
    if (outcome.status === 'infra') throw await this.#broken(episode, outcome)
    if (outcome.status === 'timeout') return failed(name, 'timeout', outcome.text, false)
    return { observation: { tool_name: name, result: resultOf(outcome), error: null }, reward: null, done: false }
  }

  /** The environment's verdict. One without a number is told as such where that says something of the task, and is a fault where it is ours. */
  async #submit(episode: Episode, text: unknown): Promise<Observation> {
    const { environment } = this.#o
    const { task, attempt, box } = episode
    const lastSaid = async () => (typeof text === 'string' && text !== '' ? text : null)
    episode.done = true
    const signal = AbortSignal.any([
      this.#ended.signal,
      AbortSignal.timeout((environment.box(task).verifyTimeoutMs ?? verifyMs) + marginMs),
    ])
    const about = { task, signal, emit: () => undefined }
    let draft: VerdictDraft
    try {
      const artifacts = await environment.collect({ ...about, attempt, box, lastSaid })
      await using _filesystem = artifacts.filesystem ?? null
      const openBox = verifierBoxes(this.#o.sandbox, { labels: {}, signal })
      draft = await environment.verify({ ...about, artifacts, openBox })
    } finally {
      await box[Symbol.asyncDispose]()
    }
    const { status, reward, components, evidence } = draft
    if (status === 'infra_error' || status === 'judge_failed') {
      throw new PaddockError('VERIFIER_FAILED', `There is no reward: ${draft.reason}`)
    }
    const verdict = { status, reward, components, evidence, ...(draft.reward === null ? { reason: draft.reason } : {}) }
    const said = resultOf({ status: 'ok', text: 'Your work is handed in.' })
    const observation = { tool_name: submitTool.name, result: said, error: null }
    return { observation, reward, done: true, metadata: { verdict } }
  }

  #listed(): readonly Listed[] {
    const task = this.#episode?.task ?? this.#o.tasks[0]
    return task === undefined ? [] : [...this.#o.environment.tools(task).map(listed), submitTool]
  }

  #toolNamed(name: string, task: Task): Tool | null {
    return this.#o.environment.tools(task).find((tool) => tool.name === name) ?? null
  }

  #taskOf(given: unknown): Task {
    const read = resetSchema.safeParse(given)
    if (!read.success)
      throw new Refused(
        'VALIDATION_ERROR',
        'A reset is given {"seed": a whole number} or {"task": a name}, or neither.',
      )
    const { seed, task: name } = read.data
    const { tasks, next } = this.#o
    if (name == null) return (seed == null ? null : tasks[seed % tasks.length]) ?? next()
    const found = tasks.find((task) => task.name === name)
    if (found === undefined) throw new Refused('VALIDATION_ERROR', `There is no task ${JSON.stringify(name)} here.`)
    return found
  }

  /** What failed of an episode that is of no more use. */
  async #broken(episode: Episode, { text, fault }: ToolOutcome): Promise<Error> {
    episode.done = true
    await episode.box[Symbol.asyncDispose]()
    return fault ?? new PaddockError('BOX_DEAD', text)
  }

  async #over(): Promise<void> {
    const episode = this.#episode
    this.#episode = null
    await episode?.box[Symbol.asyncDispose]()
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(() => {
      this.#ended.signal.throwIfAborted()
      return work()
    })
    this.#last = mine.catch(() => undefined)
    return mine
  }
}

/** An action without a type is a call. */
function typed(action: unknown): unknown {
  return typeof action === 'object' && action !== null && !('type' in action)
    ? { ...action, type: 'call_tool' }
    : action
}

function failed(name: string, kind: string, message: string, done: boolean): Observation {
  const observation = { tool_name: name, result: null, error: { error_type: kind, message } }
  return { observation, reward: null, done }
}
