import type { Box } from '../../sandbox/index.ts'
import type { SqlEngine } from './engines/index.ts'
import { ResidentProgram } from './resident-program.ts'
import type { RunnerLimits, RunnerRequest } from './runner.ts'
import type { RunnerAnswer, RunnerRequests } from './wire.ts'

const residents = new WeakMap<Box, Resident>()

/**
 * The one program that runs the SQL of tools in an agent's box, started at first use (or by {@link Resident.start}) and
 * again when it ended. It answers the agent only: verdicts are made in another box, by programs of their own.
 */
export function residentIn(box: Box, engine: SqlEngine): Resident {
  const found = residents.get(box)
  if (found !== undefined) return found
  const fresh = new Resident(box, engine)
  residents.set(box, fresh)
  return fresh
}

/** Asks are independent of each other; several run at once. */
class Resident {
  readonly #box: Box
  readonly #engine: SqlEngine
  #program: ResidentProgram | null = null

  constructor(box: Box, engine: SqlEngine) {
    this.#box = box
    this.#engine = engine
  }

  /** Starts the program unless it runs, so that the first statement need not wait for it. */
  start(): ResidentProgram {
    if (this.#program?.hasEnded !== false) this.#program = new ResidentProgram(this.#box, this.#engine.resident)
    return this.#program
  }

  /**
   * Runs one request; its deadline counts from when it is begun. What other processes of the box do to the program is the
   * statement's own failure. Throws `BOX_DEAD`, `VERIFIER_FAILED` when the program fails by itself, and the signal's reason.
   */
  async ask<Op extends keyof RunnerRequests>(
    request: RunnerRequest<Op>,
    o: { readonly limits: RunnerLimits; readonly signal: AbortSignal },
  ): Promise<RunnerAnswer<Op>> {
    o.signal.throwIfAborted()
    return this.start().ask(request, o)
  }
}
