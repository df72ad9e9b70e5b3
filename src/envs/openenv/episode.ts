import { once } from 'node:events'
import { z } from 'zod'
import type { ArtifactItem, ToolOutcome } from '../contract.ts'
import { recordItem, type RunningServer, serverFault, type ServerProgram, startServer } from '../side-server/index.ts'
import { type Observed, Session } from './session.ts'
import { actionOutcome, toolCallOutcome } from './text.ts'

/** Where the environment is served: by a program that is started for each attempt, or by a server that runs already. */
export type OpenEnvServer = ServerProgram | { readonly url: string }

/** What the record is called among the artifacts. */
export const recordName = 'openenv'

export const recordSchema = z.object({
  steps: z.array(z.object({ tool: z.string(), reward: z.number().nullable(), done: z.boolean() })),
})
/** What the environment said of each step that it took. */
export type EpisodeRecord = z.infer<typeof recordSchema>

/** What of the rewards of the steps is the rollout's: their sum, or the last one that was told. */
export type RewardOf = 'sum' | 'last'

/** Null: no step has told of one. */
export function rewardOf(steps: EpisodeRecord['steps'], how: RewardOf): number | null {
  const rewards = steps.flatMap(({ reward }) => (reward === null ? [] : [reward]))
  if (how === 'last') return rewards.at(-1) ?? null
  return rewards.length === 0 ? null : rewards.reduce((sum, one) => sum + one, 0)
}

const blameMs = 1000

/** Starts the program, or trusts the URL. */
export async function serverAt(server: OpenEnvServer, signal: AbortSignal): Promise<RunningServer> {
  if ('command' in server) return startServer(server, signal)
  const never = new AbortController()
  return { origin: server.url.replace(/\/$/, ''), fault: never.signal, [Symbol.asyncDispose]: async () => undefined }
}

/** One attempt's server and session. Steps are taken one after the other, however many are asked for at once. */
export class Episode implements AsyncDisposable {
  readonly #server: RunningServer
  readonly #session: Session
  readonly #steps: EpisodeRecord['steps'] = []
  readonly #reward: RewardOf
  #last: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | null = null

  private constructor(server: RunningServer, session: Session, reward: RewardOf) {
    this.#server = server
    this.#session = session
    this.#reward = reward
  }

  static async begin(
    server: OpenEnvServer,
    o: { readonly answerMs: number; readonly reward: RewardOf; readonly signal: AbortSignal },
  ): Promise<Episode> {
    const running = await serverAt(server, o.signal)
    try {
      const session = await Session.open(running.origin, { ...o, fault: running.fault })
      return new Episode(running, session, o.reward)
    } catch (error) {
      await running[Symbol.asyncDispose]()
      throw error
    }
  }

  async reset(given: Readonly<Record<string, unknown>>): Promise<Observed> {
    return this.#next(() => this.#session.reset(given))
  }

  /** One action of the agent. What it earned is kept, whether or not anybody still waits for the answer. */
  async step(tool: string, action: Readonly<Record<string, unknown>>, kind: 'tools' | 'action'): Promise<ToolOutcome> {
    return this.#next(async () => {
      if (this.#steps.at(-1)?.done === true) {
        return { status: 'error', text: 'The episode is over: the environment takes no more steps.' }
      }
      const sent = kind === 'tools' ? { type: 'call_tool', tool_name: tool, arguments: action } : action
      const answer = await this.#session.step(sent)
      if ('refused' in answer) return { status: 'error', text: answer.refused }
      const outcome = kind === 'tools' ? toolCallOutcome(answer) : actionOutcome(answer)
      if (outcome === null) throw serverFault(`could not call its tool ${tool}: ${JSON.stringify(answer.observation)}`)
      this.#steps.push({ tool, reward: answer.reward ?? null, done: answer.done })
      const reward = rewardOf(this.#steps, this.#reward)
      return reward === null ? outcome : { ...outcome, rewards: { reward } }
    })
  }

  /** What was earned, once every step that was asked for is over. Throws unless the server is still sound. */
  async record(): Promise<ArtifactItem> {
    await this.#next(() => this.#session.requireAlive())
    const record: EpisodeRecord = { steps: this.#steps }
    return recordItem(recordName, record)
  }

  /** Ends session and program. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= (async () => {
      // A program of its own ends anyway, and takes its sessions along.
      const others = this.#last.catch(() => undefined)
      await Promise.all([this.#session[Symbol.asyncDispose](), others, this.#server[Symbol.asyncDispose]()])
    })()
    return this.#closing
  }

  /** A session that broke because the program ended is told by that end, which comes an instant later. */
  async #blamed(error: unknown): Promise<never> {
    const { fault } = this.#server
    if (!fault.aborted && this.#closing === null)
      await once(fault, 'abort', { signal: AbortSignal.timeout(blameMs) }).catch(() => undefined)
    throw fault.aborted ? fault.reason : error
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work).catch((error: unknown) => this.#blamed(error))
    this.#last = mine.catch(() => undefined)
    return mine
  }
}
