import { PaddockError } from '../../core/index.ts'
import { type Box, sandboxSource } from '../../sandbox/index.ts'
import { answerSchemas, type RunnerAnswer, type RunnerRequests } from './wire.ts'

/** The program that runs SQL in a box; given to its python with every use, so that nothing in the box can change it. */
export const runnerSource: string = sandboxSource('sql/runner.py')

/** Limits of one statement. */
export interface RunnerLimits {
  readonly timeoutMs: number
  readonly maxRows: number
  readonly maxBytes: number
  readonly memoryMb: number
}

/** Limits of the verifier: a larger result is a wrong one. */
export const verifierLimits = { maxRows: 100_000, maxBytes: 24 << 20, memoryMb: 768 }

/** One request to {@link askAll}. */
export type RunnerRequest<Op extends keyof RunnerRequests> = RunnerRequests[Op] & { readonly op: Op }

const outOfMemory = { status: 'error', kind: 'memory', message: 'out of memory' } as const

/** Milliseconds that starting python and copying files may take beside the statements. */
const overheadMs = 20_000

/**
 * Runs requests one after the other in one process of the box; each statement in a child of it, killed at its deadline.
 * Throws `BOX_DEAD`, `VERIFIER_FAILED` when the program itself fails, and the signal's reason.
 */
export async function askAll<Op extends keyof RunnerRequests>(
  requests: readonly RunnerRequest<Op>[],
  box: Box,
  o: {
    readonly limits: RunnerLimits
    readonly role: 'tool' | 'verifier'
    /** What the event log shows as the command. */
    readonly shown: string
    readonly signal: AbortSignal
  },
): Promise<readonly RunnerAnswer<Op>[]> {
  const lines = requests.map((request) => `${JSON.stringify({ ...o.limits, ...request })}\n`)
  const result = await box.exec(
    {
      command: ['python3', '-I', '-S', '-c', runnerSource],
      cwd: '/',
      stdin: lines.join(''),
      timeoutMs: overheadMs + o.limits.timeoutMs * requests.length,
      maxOutputBytes: 256 << 20,
      eventRole: o.role,
      eventCommand: o.shown,
    },
    { signal: o.signal },
  )
  if (result.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${result.why.detail}`)
  // The kernel took it for its memory: that is a fate of the statements, as the limit of each child is.
  if (result.kind === 'oom') {
    // Every operation may fail so, which a type over all of them cannot say.
    return requests.map(() => outOfMemory as RunnerAnswer<Op>)
  }
  const answers = new TextDecoder().decode(result.stdout).split('\n').slice(0, -1)
  if (result.kind !== 'exited' || result.code !== 0 || answers.length !== requests.length) {
    const said = new TextDecoder().decode(result.stderr).trim().slice(-400)
    throw new PaddockError('VERIFIER_FAILED', `The SQL program in the box ended as ${result.kind}: ${said}`, {
      fix: 'The image needs python3 with its sqlite3 module.',
    })
  }
  return answers.map((line, i) => parse(line, requests[i]))
}

/** One request. */
export async function askOne<Op extends keyof RunnerRequests>(
  request: RunnerRequest<Op>,
  box: Box,
  o: Parameters<typeof askAll>[2],
): Promise<RunnerAnswer<Op>> {
  const [answer] = await askAll([request], box, o)
  if (answer === undefined) throw new PaddockError('VERIFIER_FAILED', 'The SQL program gave no answer')
  return answer
}

function parse<Op extends keyof RunnerRequests>(
  line: string,
  request: { readonly op: Op } | undefined,
): RunnerAnswer<Op> {
  const parsed = request === undefined ? null : answerSchemas[request.op].safeParse(JSON.parse(line))
  if (parsed === null || !parsed.success || (parsed.data.status === 'error' && parsed.data.kind === 'broken')) {
    throw new PaddockError('VERIFIER_FAILED', `The SQL program answered ${line.slice(0, 200)}`)
  }
  // The schema was taken by the same key as the type.
  return parsed.data as RunnerAnswer<Op>
}
