import { setTimeout as sleep } from 'node:timers/promises'
import { PaddockError } from '../../core/index.ts'
import type { Box, ExecResult } from '../../sandbox/index.ts'
import { answerOf, outOfMemory, programFailed, pythonOf, requestLine } from './runner.ts'
import type { RunnerLimits, RunnerRequest } from './runner.ts'
import type { RunnerAnswer, RunnerRequests } from './wire.ts'

/** As long as any box may live. */
const lifetimeMs = 7 * 24 * 3600_000
/** Beyond a statement's deadline, in which the program has killed and told it long ago. */
const patienceMs = 5000
/** A line longer than any answer within {@link RunnerLimits} of a tool is not the program's. */
const longestLine = 64 << 20

const ended = { status: 'error', kind: 'memory', message: 'the SQL program was ended; ask again' } as const

interface Asked {
  readonly line: (line: string) => void
  readonly end: (result: ExecResult, stderr: string) => void
}

/** One life of the program. */
export class ResidentProgram {
  readonly #asked = new Map<number, Asked>()
  readonly #kill = new AbortController()
  readonly #box: Box
  readonly #decoder = new TextDecoder()
  #input = Promise.withResolvers<void>()
  #lines: string[] = []
  #rest = ''
  #stderr = ''
  #lastId = 0
  hasEnded = false

  constructor(box: Box, program: string) {
    this.#box = box
    const o = { signal: this.#kill.signal }
    const spec = {
      command: pythonOf(program),
      cwd: '/',
      stdin: this.#stdin(),
      timeoutMs: lifetimeMs,
      output: 'told' as const,
      onStdout: (chunk: Uint8Array) => this.#hear(this.#decoder.decode(chunk, { stream: true })),
      onStderr: (chunk: Uint8Array) => {
        this.#stderr = (this.#stderr + new TextDecoder().decode(chunk)).slice(-4096)
      },
    }
    box.exec(spec, o).then(
      (result) => this.#end(result),
      () => this.#end(null),
    )
  }

  async ask<Op extends keyof RunnerRequests>(
    request: RunnerRequest<Op>,
    { limits, signal }: { readonly limits: RunnerLimits; readonly signal: AbortSignal },
  ): Promise<RunnerAnswer<Op>> {
    const id = (this.#lastId += 1)
    const answer = Promise.withResolvers<RunnerAnswer<Op>>()
    const cancel = (): void => {
      this.#say(JSON.stringify({ op: 'cancel', of: id }))
      answer.reject(signal.reason)
    }
    const watch = new AbortController()
    signal.addEventListener('abort', cancel, { once: true })
    this.#asked.set(id, {
      line: (line) => {
        try {
          answer.resolve(answerOf(line, request.op))
        } catch (error) {
          answer.reject(error)
        }
      },
      end: (result, stderr) => settleEnd(result, stderr, answer),
    })
    this.#say(requestLine(id, request, limits))
    void this.#endStuck(limits.timeoutMs + patienceMs, watch.signal)
    try {
      return await answer.promise
    } finally {
      watch.abort()
      signal.removeEventListener('abort', cancel)
      this.#asked.delete(id)
    }
  }

  #say(line: string): void {
    this.#lines.push(`${line}\n`)
    this.#input.resolve()
  }

  async *#stdin(): AsyncIterable<Uint8Array> {
    while (!this.hasEnded) {
      await this.#input.promise
      this.#input = Promise.withResolvers()
      const said = this.#lines.join('')
      this.#lines = []
      yield Buffer.from(said, 'utf8')
    }
  }

  #hear(text: string): void {
    const [first = '', ...others] = text.split('\n')
    if (others.length === 0) this.#rest += first
    else {
      this.#take(this.#rest + first)
      this.#rest = others.pop() ?? ''
      for (const line of others) this.#take(line)
    }
    if (this.#rest.length > longestLine) this.#kill.abort()
  }

  #take(line: string): void {
    const id = idOf(line)
    if (id !== null) this.#asked.get(id)?.line(line)
  }

  /**
   * Ends a program that does not answer: it was stopped, or does not get its deadlines done. First asks the supervisor
   * something, which a box that stands still (a pause, a snapshot) answers only when it goes on.
   */
  async #endStuck(afterMs: number, signal: AbortSignal): Promise<void> {
    try {
      await sleep(afterMs, undefined, { signal, ref: false })
      await this.#box.exec({ command: ['true'] }, { signal })
      await sleep(patienceMs, undefined, { signal, ref: false })
      this.#kill.abort()
    } catch {
      // Answered meanwhile, or the box is dead, which ends the program too.
    }
  }

  #end(result: ExecResult | null): void {
    this.hasEnded = true
    this.#input.resolve()
    for (const asked of this.#asked.values()) {
      asked.end(result ?? stopped, this.#stderr)
    }
  }
}

const stopped: ExecResult = {
  kind: 'timed_out',
  stdout: new Uint8Array(),
  stderr: new Uint8Array(),
  truncated: { stdout: 0, stderr: 0 },
  killed: 0,
  oomKills: 0,
  startedAt: 0,
  durationMs: 0,
}

function idOf(line: string): number | null {
  // Its place is fixed, so that a long answer is not parsed twice.
  const found = /^\{"id": (\d+),/.exec(line)?.[1]
  return found === undefined ? null : Number(found)
}

/** What the end of the program means for a statement that it had. */
function settleEnd<Op extends keyof RunnerRequests>(
  result: ExecResult,
  stderr: string,
  { resolve, reject }: PromiseWithResolvers<RunnerAnswer<Op>>,
): void {
  if (result.kind === 'box_dead') reject(new PaddockError('BOX_DEAD', `The box died: ${result.why.detail}`))
  else if (result.kind === 'exited') reject(programFailed(`exit ${result.code}`, stderr))
  // Every operation may fail so, which a type over all of them cannot say.
  else resolve((result.kind === 'oom' ? outOfMemory : ended) as RunnerAnswer<Op>)
}
