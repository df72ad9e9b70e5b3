import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { sha256 } from '../../../core/index.ts'
import type { HarnessExit, HarnessReport, HostContext, HostHarness } from '../contract.ts'
import { agentVariables, defineHarness, reportExit } from '../define.ts'
import { OutputTail } from '../../output.ts'

const graceMs = 2000
/** How long a program that was ended from outside waits for the word that all is to end: the one signal was meant for both. */
const hearsMs = 2000
const tailBytes = 64 * 1024

/** What a program on the host needs to run at all; no key of anything. */
const usual = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'TERM',
  'TZ',
  'LANG',
  'LANGUAGE',
  'LC_*',
  'TMPDIR',
  'TMP',
  'TEMP',
  'XDG_*',
  'VIRTUAL_ENV',
  'CONDA_PREFIX',
  'CONDA_DEFAULT_ENV',
  'PYTHONPATH',
  'NODE_PATH',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'REQUESTS_CA_BUNDLE',
  'LD_LIBRARY_PATH',
  'CUDA_VISIBLE_DEVICES',
]

/** What {@link scriptHarness} runs. */
export interface ScriptOptions {
  /** A line for `sh -c`. */
  readonly command: string
  readonly cwd?: string
  /** Further variables. */
  readonly env?: Readonly<Record<string, string>>
  /** Names of variables of this process that it gets beside the usual ones; with a star, how names begin. */
  readonly pass?: readonly string[]
  /** Default: that of this process. */
  readonly environment?: Readonly<Record<string, string | undefined>>
}

/**
 * A program of the user's on the host, without a box. A model acts through it, so it has of this process's environment what programs
 * need to run and what `pass` names, and no keys of clouds and other models; and
 * `OPENAI_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_MODEL` besides. `PADDOCK_PROMPT` and stdin say what it is asked.
 * Its process group ends with the attempt.
 */
export function scriptHarness(o: ScriptOptions): HostHarness {
  return defineHarness({
    name: 'script',
    apiVersion: 1,
    version: sha256(o.command).slice(0, 12),
    dialect: 'chat',
    replays: true,
    place: 'host',
    box: 'none',
    run: async (context) => {
      const child = spawn('/bin/sh', ['-c', o.command], {
        ...(o.cwd === undefined ? {} : { cwd: o.cwd }),
        env: {
          ...passed(o.environment ?? process.env, [...usual, ...(o.pass ?? [])]),
          ...o.env,
          ...variables(context),
        },
        // A group of its own, so that what it started ends with it.
        detached: true,
        stdio: ['pipe', 'pipe', 'pipe'],
      })
      return await followed(child, context)
    },
  })
}

function passed(
  environment: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): Record<string, string> {
  const isNamed = (name: string) =>
    names.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one))
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      value !== undefined && isNamed(name) ? [[name, value]] : [],
    ),
  )
}

function variables({ baseUrl, apiKey, model, prompt, agents }: HostContext): Record<string, string> {
  const own = { OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey, OPENAI_MODEL: model, PADDOCK_PROMPT: prompt }
  return { ...own, ...agentVariables(agents) }
}

async function followed(child: ChildProcess, context: HostContext): Promise<HarnessReport> {
  const { signal, prompt, onOutput } = context
  const tails = { stdout: new OutputTail(tailBytes), stderr: new OutputTail(tailBytes) }
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]?.on('data', (chunk: Buffer) => {
      tails[stream].push(chunk)
      onOutput(stream, chunk)
    })
  }
  // A program that never reads its input closes the pipe early.
  child.stdin?.on('error', () => undefined).end(prompt)
  let killTimer: NodeJS.Timeout | null = null
  const stop = () => {
    kill(child, 'SIGTERM')
    killTimer = setTimeout(() => kill(child, 'SIGKILL'), graceMs)
  }
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    const exit = await ended(child)
    if (wasAskedToEnd(exit)) await abortedWithin(hearsMs, signal)
    signal.throwIfAborted()
    return reportExit({ ...exit, stdout: tails.stdout.text(), stderr: tails.stderr.text() }, [], tails.stdout.text())
  } finally {
    signal.removeEventListener('abort', stop)
    if (killTimer !== null) clearTimeout(killTimer)
    kill(child, 'SIGKILL')
  }
}

/** By a signal that Slurm, a terminal or a service manager sends to all of a job, or by a shell that tells of one. */
function wasAskedToEnd({ exitCode, signal }: Pick<HarnessExit, 'exitCode' | 'signal'>): boolean {
  const asks = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
  return asks.some((one) => signal === one || exitCode === 128 + constants.signals[one])
}

function abortedWithin(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })
}

function ended(child: ChildProcess): Promise<Pick<HarnessExit, 'exitCode' | 'signal' | 'oom'>> {
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    // Not `close`: a background process that holds the pipes must not keep the attempt open.
    child.on('exit', (exitCode, signal) => resolve({ exitCode, signal, oom: false }))
  })
}

/** Signals the whole group; a group that is gone is what was wanted. */
function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // ESRCH
  }
}
