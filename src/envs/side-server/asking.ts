import { once } from 'node:events'
import type { PaddockError } from '../../core/index.ts'
import { serverFault } from './fault.ts'
import type { RunningServer } from './program.ts'

const blameMs = 1000

/** An answer, whatever it says. */
export interface Answer {
  readonly status: number
  readonly text: string
  readonly headers: Headers
}

/**
 * Asks an environment's server one thing after the other. One that gives no answer, or breaks off, has failed, and says so of everything that is
 * asked afterwards: the first fault stays.
 */
export class Asking {
  readonly #server: RunningServer
  readonly #answerMs: number
  #last: Promise<unknown> = Promise.resolve()
  #fault: PaddockError | null = null

  constructor(server: RunningServer, answerMs: number) {
    this.#server = server
    this.#answerMs = answerMs
  }

  /** Posts JSON when all that was asked before is answered, and reads the answer with `read`. */
  ask<T>(
    path: string,
    body: unknown,
    read: (answer: Answer) => T,
    headers: () => Record<string, string> = () => ({}),
  ): Promise<T> {
    const mine = this.#last.then(async () => read(await this.#post(path, body, headers())))
    this.#last = mine.catch(() => undefined)
    return mine
  }

  failed(what: string): PaddockError {
    return (this.#fault ??= serverFault(what))
  }

  async #post(path: string, body: unknown, headers: Record<string, string>): Promise<Answer> {
    if (this.#fault !== null) throw this.#fault
    const { fault } = this.#server
    const late = AbortSignal.timeout(this.#answerMs)
    try {
      const response = await fetch(`${this.#server.origin}/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
        signal: AbortSignal.any([fault, late]),
      })
      return { status: response.status, text: await response.text(), headers: response.headers }
    } catch (error) {
      if (late.aborted) throw this.failed(`gave no answer within ${this.#answerMs} ms`)
      // A connection breaks an instant before its process is known to have ended.
      if (!fault.aborted) await once(fault, 'abort', { signal: AbortSignal.timeout(blameMs) }).catch(() => undefined)
      throw fault.aborted ? fault.reason : this.failed(`broke its connection: ${String(error)}`)
    }
  }
}

/** The JSON of an answer; undefined where it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
