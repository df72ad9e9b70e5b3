import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { Box } from '../../../sandbox/index.ts'
import { InputQueue } from './input-queue.ts'

/** An event of the browser; `session` names the target it is about, null the browser itself. */
export interface CdpEvent {
  readonly method: string
  readonly params: unknown
  readonly session: string | null
}

/** The browser refused a command: the page, the node or the frame is not (any more) what the command expects. */
export class CdpRefusal extends Error {
  readonly method: string

  constructor(method: string, message: string) {
    super(`${method}: ${message}`)
    this.method = method
  }
}

const messageShape = z.object({
  id: z.number().optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).optional(),
  sessionId: z.string().optional(),
})

interface Waiting {
  readonly method: string
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

export interface CdpPipeOptions {
  /** Line for the box's shell. It takes CDP on descriptor 0 and gives it on descriptor 1. */
  readonly command: string
  readonly user: string | null
  readonly cwd: string
  /** Longest silence of the browser after a command, in milliseconds. Default 60,000. */
  readonly answerMs?: number
}

/** Longest silence of the browser after a command, unless it is told otherwise. */
const usualAnswerMs = 60_000

/**
 * The Chrome DevTools Protocol over the descriptors 3 and 4 of a browser in a box (`--remote-debugging-pipe`: JSON
 * messages, each ended by a NUL; chrome/browser/devtools/…/devtools_pipe_handler.cc). They are the stdin and stdout of one
 * long command of the box's channel, so there is no port: nothing in the box can drive the browser, only its owner.
 */
export class CdpPipe implements AsyncDisposable {
  /** Resolves with the reason when the browser has ended; never rejects. */
  readonly gone: Promise<string>
  readonly #input = new InputQueue()
  readonly #stop = new AbortController()
  readonly #waiting = new Map<number, Waiting>()
  readonly #listeners = new Set<(event: CdpEvent) => void>()
  readonly #ended: Promise<void>
  readonly #answerMs: number
  #nextId = 1
  #rest: Buffer[] = []
  #lastWords = ''
  #why: string | null = null

  /** Starts the browser. */
  constructor(box: Box, o: CdpPipeOptions) {
    this.#answerMs = o.answerMs ?? usualAnswerMs
    const running = box.exec(
      {
        command: o.command,
        cwd: o.cwd,
        ...(o.user === null ? {} : { user: o.user }),
        stdin: this.#input,
        output: 'told',
        timeoutMs: 7 * 24 * 3600_000,
        // What it holds is thrown away with it.
        graceMs: 0,
        onStdout: (chunk) => this.#take(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)),
        onStderr: (chunk) => (this.#lastWords = (this.#lastWords + Buffer.from(chunk).toString('utf8')).slice(-2000)),
      },
      { signal: this.#stop.signal },
    )
    this.gone = running.then(
      (result) => (result.kind === 'box_dead' ? `the box died: ${result.why.detail}` : `it ended (${result.kind})`),
      (error: unknown) => (this.#stop.signal.aborted ? 'it was closed' : String(error)),
    )
    this.#ended = this.gone.then((why) => this.#end(why))
  }

  /** What the browser last said on its error output. */
  get lastWords(): string {
    return this.#lastWords.trim()
  }

  /** Null while the browser lives. */
  get death(): string | null {
    return this.#why
  }

  /**
   * Sends a command and gives its result as the schema reads it. Throws {@link CdpRefusal} when the browser refuses it,
   * `BROWSER_GONE` when the browser ends or does not answer.
   */
  async send<T>(
    method: string,
    params: Readonly<Record<string, unknown>>,
    o: { readonly session?: string | null; readonly answer: z.ZodType<T> },
  ): Promise<T> {
    if (this.#why !== null) throw this.#fault(method)
    const id = this.#nextId++
    const answer = Promise.withResolvers<unknown>()
    this.#waiting.set(id, { method, resolve: answer.resolve, reject: answer.reject })
    const session = o.session ?? null
    this.#input.push(
      Buffer.from(`${JSON.stringify({ id, method, params, ...(session === null ? {} : { sessionId: session }) })}\0`),
    )
    const timer = setTimeout(() => {
      answer.reject(
        new PaddockError('BROWSER_GONE', `The browser does not answer ${method} for ${this.#answerMs / 1000} s`),
      )
    }, this.#answerMs)
    try {
      return o.answer.parse(await answer.promise)
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(id)
    }
  }

  /** The listener is told of every event, in order, before anything that awaits goes on. */
  on(listener: (event: CdpEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Ends the browser with everything it started. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the browser was closed'))
    this.#input.end()
    await this.#ended
  }

  #take(chunk: Buffer): void {
    let from = 0
    for (let at = chunk.indexOf(0); at !== -1; at = chunk.indexOf(0, from)) {
      const piece = chunk.subarray(from, at)
      from = at + 1
      const whole = this.#rest.length === 0 ? piece : Buffer.concat([...this.#rest, piece])
      this.#rest = []
      this.#message(whole.toString('utf8'))
    }
    if (from < chunk.length) this.#rest.push(Buffer.from(chunk.subarray(from)))
  }

  #message(text: string): void {
    const { id, method, params, result, error, sessionId } = messageShape.parse(JSON.parse(text))
    if (id !== undefined) {
      const waiting = this.#waiting.get(id)
      if (error === undefined) waiting?.resolve(result)
      else waiting?.reject(new CdpRefusal(waiting.method, error.message))
    } else if (method !== undefined) {
      for (const listener of this.#listeners) listener({ method, params, session: sessionId ?? null })
    }
  }

  #end(why: string): void {
    this.#why = why
    this.#input.end()
    for (const { method, reject } of this.#waiting.values()) reject(this.#fault(method))
  }

  #fault(method: string): PaddockError {
    const words = this.lastWords === '' ? '' : `; it last said: ${this.lastWords.split('\n').at(-1) ?? ''}`
    return new PaddockError('BROWSER_GONE', `The browser is gone (${this.#why ?? 'unknown'}) at ${method}${words}`)
  }
}
