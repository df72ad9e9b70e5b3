import { PaddockError } from '../../core/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { SqlEngine } from './engines/index.ts'
import { answerSchemas, type RunnerAnswer, type RunnerRequests } from './wire.ts'

/** Limits of one statement. */
export interface RunnerLimits {
  readonly timeoutMs: number
  readonly maxRows: number
  readonly maxBytes: number
  readonly memoryMb: number
  /** Of all answers of the process together. Absent: any number. */
  readonly maxTold?: number
}

/** Limits of the verifier: a larger result is a wrong one. */
export const verifierLimits = { maxRows: 100_000, maxBytes: 24 << 20, memoryMb: 768 }

/** One request to {@link askAll}. */
export type RunnerRequest<Op extends keyof RunnerRequests> = RunnerRequests[Op] & {
  readonly op: Op
  /** Where one of these fails, those behind it are answered as it was, and are not run. */
  readonly together?: true
}

export const outOfMemory = { status: 'error', kind: 'memory', message: 'out of memory' } as const

/** Bytes that all answers of one process may have together, escapes and all; the one that is beyond says that it is too large. */
const maxTold = 255 << 20

/** Milliseconds for starting python, copying files, and the time that statements get back for want of a processor. */
const overheadMs = 60_000

/**
 * Runs requests one after the other in one process of the box that ends with them; each statement in a child of it, killed
 * at its deadline. For verifiers: nobody else has asked that process anything.
 * Throws `BOX_DEAD`, `VERIFIER_FAILED` when the program itself fails, and the signal's reason.
 */
export async function askAll<Op extends keyof RunnerRequests>(
  requests: readonly RunnerRequest<Op>[],
  box: Box,
  o: {
    readonly engine: SqlEngine
    readonly limits: RunnerLimits
    /** What the event log shows as the command. */
    readonly shown: string
    readonly signal: AbortSignal
  },
): Promise<readonly RunnerAnswer<Op>[]> {
  const limits = { ...o.limits, maxTold }
  const lines = requests.map((request, id) => `${requestLine(id, request, limits)}\n`)
  const result = await box.exec(
    {
      command: pythonOf(o.engine.program),
      cwd: '/',
      stdin: lines.join(''),
      timeoutMs: overheadMs + o.limits.timeoutMs * requests.length,
      maxOutputBytes: maxTold + (1 << 20),
      eventRole: 'verifier',
      eventCommand: o.shown,
    },
    { signal: o.signal },
  )
  if (result.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${result.why.detail}`)
  // The kernel took it for its memory: that is an end of the statements, as the limit of each child is.
  if (result.kind === 'oom') {
    // Every operation may fail so, which a type over all of them cannot say.
    return requests.map(() => outOfMemory as RunnerAnswer<Op>)
  }
  const answers = new TextDecoder().decode(result.stdout).split('\n').slice(0, -1)
  if (result.kind !== 'exited' || result.code !== 0 || answers.length !== requests.length) {
    throw programFailed(result.kind, new TextDecoder().decode(result.stderr))
  }
  return answers.map((line, i) => answerOf(line, requests[i]?.op))
}

/** How the box's own python is called: no variables, no site packages, nothing read from a directory of the agent. */
export function pythonOf(program: string): readonly string[] {
  return ['python3', '-I', '-S', '-c', program]
}

/** A request with its number and limits, as the program reads it. */
export function requestLine(id: number, request: RunnerRequest<keyof RunnerRequests>, limits: RunnerLimits): string {
  return JSON.stringify({ ...limits, ...request, id })
}

/** The answer on a line to a request of `op`. Throws `VERIFIER_FAILED` for what is none. */
export function answerOf<Op extends keyof RunnerRequests>(line: string, op: Op | undefined): RunnerAnswer<Op> {
  const parsed = op === undefined ? null : answerSchemas[op].safeParse(JSON.parse(line))
  if (parsed === null || !parsed.success || (parsed.data.status === 'error' && parsed.data.kind === 'broken')) {
    throw new PaddockError('VERIFIER_FAILED', `The SQL program answered ${line.slice(0, 200)}`)
  }
  // The schema was taken by the same key as the type.
  return parsed.data as RunnerAnswer<Op>
}

/** The program in the box ended where it should not have. */
export function programFailed(how: string, stderr: string): PaddockError {
  return new PaddockError(
    'VERIFIER_FAILED',
    `The SQL program in the box ended as ${how}: ${stderr.trim().slice(-400)}`,
    {
      fix: 'The image is as its recipe made it; python3 must be in it.',
    },
  )
}
