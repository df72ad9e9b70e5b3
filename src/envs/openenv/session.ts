import { z } from 'zod'
import type { PaddockError } from '../../core/index.ts'
import { serverFault } from '../side-server/index.ts'

const observed = z.object({
  observation: z.record(z.string(), z.unknown()),
  // Its own number; it may be told as a truth value.
  reward: z.union([z.number(), z.boolean().transform(Number)]).nullish(),
  done: z.boolean(),
})
/** What a reset or a step came to. */
export type Observed = z.infer<typeof observed>

// Frames of openenv 0.10.0, core/env_server/types.py.
const frame = z.discriminatedUnion('type', [
  z.object({ type: z.literal('observation'), data: observed }),
  z.object({ type: z.literal('state'), data: z.record(z.string(), z.unknown()) }),
  z.object({
    type: z.literal('error'),
    data: z.object({ message: z.string(), code: z.string(), errors: z.array(z.unknown()).optional() }),
  }),
])
type Frame = z.infer<typeof frame>

/** An action that does not have the shape of the environment's actions: the agent's to correct. */
export interface Refused {
  readonly refused: string
}

/**
 * One episode on an OpenEnv server: a WebSocket to `/ws`, which has an environment of its own there. Ask one thing at a
 * time. Whatever it answers beside the protocol, and whatever it fails at, is `ENVIRONMENT_SERVER_FAILED`, from then on for good.
 */
export class Session implements AsyncDisposable {
  readonly #socket: WebSocket
  readonly #answerMs: number
  readonly #closed = Promise.withResolvers<void>()
  #fault: PaddockError | null = null
  #waiting: PromiseWithResolvers<string> | null = null
  #ending = false

  private constructor(socket: WebSocket, answerMs: number) {
    this.#socket = socket
    this.#answerMs = answerMs
    socket.addEventListener('message', ({ data }) => {
      const text = typeof data === 'string' ? data : 'bytes in place of text'
      if (this.#waiting === null) this.#failed(`said without being asked: ${text.slice(0, 300)}`)
      else this.#waiting.resolve(text)
    })
    socket.addEventListener('close', ({ code }) => {
      this.#closed.resolve()
      this.#failed(`closed the session (${code})`)
    })
  }

  /** Rejects with the reason of `fault`, the server's, or of `signal`. */
  static async open(
    origin: string,
    o: { readonly answerMs: number; readonly fault: AbortSignal; readonly signal: AbortSignal },
  ): Promise<Session> {
    AbortSignal.any([o.signal, o.fault]).throwIfAborted()
    const socket = new WebSocket(`${origin.replace(/^http/, 'ws')}/ws`)
    const session = new Session(socket, o.answerMs)
    o.fault.addEventListener('abort', () => session.#failed('ended', o.fault.reason as PaddockError), { once: true })
    const opened = Promise.withResolvers<void>()
    const stop = AbortSignal.any([o.signal, AbortSignal.timeout(o.answerMs)])
    const give = (): void =>
      opened.reject(o.signal.aborted ? o.signal.reason : serverFault('opened no session in time'))
    stop.addEventListener('abort', give, { once: true })
    socket.addEventListener('open', () => opened.resolve(), { once: true })
    socket.addEventListener('error', (event) => opened.reject(serverFault('takes no session', event)), { once: true })
    try {
      await opened.promise
      return session
    } catch (error) {
      socket.close()
      throw session.#fault ?? error
    } finally {
      stop.removeEventListener('abort', give)
    }
  }

  async reset(given: Readonly<Record<string, unknown>>): Promise<Observed> {
    return this.#observed(await this.#ask({ type: 'reset', data: given }))
  }

  async step(action: Readonly<Record<string, unknown>>): Promise<Observed | Refused> {
    const answer = await this.#ask({ type: 'step', data: action })
    if (answer.type !== 'error' || answer.data.code !== 'VALIDATION_ERROR') return this.#observed(answer)
    return { refused: `${answer.data.message}: ${JSON.stringify(answer.data.errors ?? [])}` }
  }

  /** Throws unless the server still answers. An environment that cannot tell its state is alive too. */
  async requireAlive(): Promise<void> {
    const { type } = await this.#ask({ type: 'state' })
    if (type === 'observation') throw this.#failed('answered a question for its state with an observation')
  }

  /** Resolves when the server has let go of the session, so that its place is free, or does not answer. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending = true
    if (this.#socket.readyState === WebSocket.OPEN && this.#fault === null) {
      this.#socket.send(JSON.stringify({ type: 'close' }))
      const late = setTimeout(() => this.#closed.resolve(), this.#answerMs)
      await this.#closed.promise
      clearTimeout(late)
    }
    this.#socket.close()
  }

  #observed(answer: Frame): Observed {
    if (answer.type === 'observation') return answer.data
    throw this.#failed(
      answer.type === 'error' ? `failed: ${answer.data.code}: ${answer.data.message}` : 'answered with its state',
    )
  }

  async #ask(message: object): Promise<Frame> {
    if (this.#fault !== null) throw this.#fault
    const waiting = Promise.withResolvers<string>()
    this.#waiting = waiting
    const late = setTimeout(() => this.#failed(`gave no answer within ${this.#answerMs} ms`), this.#answerMs)
    try {
      this.#socket.send(JSON.stringify(message))
      const text = await waiting.promise
      const read = frame.safeParse(jsonOf(text))
      if (!read.success) throw this.#failed(`answered what the protocol does not know: ${text.slice(0, 300)}`)
      return read.data
    } finally {
      clearTimeout(late)
      this.#waiting = null
    }
  }

  /** The first fault stays. */
  #failed(what: string, known?: PaddockError): PaddockError {
    const fault = (this.#fault ??= known ?? serverFault(what))
    this.#waiting?.reject(fault)
    if (!this.#ending) this.#socket.close()
    return fault
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
