import { constants } from 'node:os'
import { PaddockError } from '../../core/index.ts'
import type { BoxDeath, ExecOutcome, ExecResult, ExecSpec } from '../contract/index.ts'
import { type ExitFacts, stdinWindowBytes } from './frames.ts'

/** One command under way. */
export class RunningCommand {
  readonly id: number
  readonly result = Promise.withResolvers<ExecResult>()
  abortedBy: AbortSignal | undefined
  inputError: unknown
  /** The box had written too much; that ended it. */
  diskFull = false
  watchdog: NodeJS.Timeout | undefined
  settled = false
  readonly #spec: ExecSpec
  readonly #startedAt: number
  readonly #chunks = { stdout: new Array<Buffer>(), stderr: new Array<Buffer>() }
  #underWay = 0
  #wake: (() => void) | null = null

  readonly #keepsOutput: boolean

  /** Without `keepsOutput` the output goes to the spec's listeners only, as views that hold during the call. */
  constructor(id: number, spec: ExecSpec, startedAt: number, keepsOutput = true) {
    this.id = id
    this.#spec = spec
    this.#startedAt = startedAt
    this.#keepsOutput = keepsOutput
  }

  output(stream: 'stdout' | 'stderr', piece: Buffer): void {
    const listener = stream === 'stdout' ? this.#spec.onStdout : this.#spec.onStderr
    // The piece is a view of a buffer that is used again. Copies of what nobody keeps would be a flood of garbage.
    if (!this.#keepsOutput) return listener?.(piece)
    const own = Buffer.from(piece)
    this.#chunks[stream].push(own)
    listener?.(own)
  }

  exit(facts: ExitFacts): void {
    if (this.abortedBy !== undefined) return this.#fail(this.abortedBy.reason)
    if (this.inputError !== undefined) return this.#fail(this.inputError)
    if (facts.kind === 'refused') {
      return this.#fail(new PaddockError('BOX_COMMAND_REFUSED', `The box refused the command: ${facts.message}.`))
    }
    const end: ExecOutcome = this.diskFull ? { kind: 'signaled', signal: 'SIGXFSZ' } : outcome(facts)
    this.settle(this.#result(end, facts))
  }

  dead(why: BoxDeath): ExecResult {
    return this.#result({ kind: 'box_dead', why }, null)
  }

  settle(result: ExecResult): void {
    this.settled = true
    this.#wake?.()
    this.result.resolve(result)
  }

  /** Waits until `bytes` more input may be under way. */
  async window(bytes: number): Promise<void> {
    while (this.#underWay + bytes > stdinWindowBytes && !this.settled) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    this.#underWay += bytes
  }

  acknowledge(bytes: number): void {
    this.#underWay -= bytes
    this.#wake?.()
  }

  #fail(reason: unknown): void {
    this.settled = true
    this.#wake?.()
    this.result.reject(reason)
  }

  #result(end: ExecOutcome, facts: ExitFacts | null): ExecResult {
    return {
      ...end,
      stdout: Buffer.concat(this.#chunks.stdout),
      stderr: Buffer.concat(this.#chunks.stderr),
      truncated: facts?.truncated ?? { stdout: 0, stderr: 0 },
      killed: facts?.killed ?? 0,
      oomKills: facts?.oomKills ?? 0,
      startedAt: this.#startedAt,
      durationMs: facts?.durationMs ?? 0,
      ...(facts === null || facts.message === '' ? {} : { notStarted: facts.message }),
    }
  }
}

/** A shell reports a killed child as 128 + 9; with a count by the kernel that is the memory limit and nothing else. */
function outcome(facts: ExitFacts): ExecOutcome {
  const killed = facts.kind === 'signaled' || facts.kind === 'keeper_lost' ? facts.value : facts.value - 128
  if (facts.kind === 'timed_out') return { kind: 'timed_out' }
  if (facts.oomKills > 0 && killed === constants.signals.SIGKILL) return { kind: 'oom' }
  if (facts.kind === 'exited') return { kind: 'exited', code: facts.value }
  return { kind: 'signaled', signal: signalName(facts.value) }
}

function signalName(number: number): string {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `SIG${number}`
}
