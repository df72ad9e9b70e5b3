import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { PaddockError } from '../core/index.ts'

/** The scripted engine as a process of ours. It is no language model: it runs prepared steps. */
export interface ScriptedEngine extends AsyncDisposable {
  readonly url: string
  /** Base of its control routes (`/scripts`, `/faults`, `/journal`). */
  readonly control: string
  readonly model: string
  readonly pid: number
  /** Resolves when the process ended, whoever ended it. */
  readonly exited: Promise<void>
}

export interface ScriptedOptions {
  /** Profile: tokenizer, template, parsers. */
  readonly profile: string
  readonly seed: number
  /** File for the ground truth. */
  readonly journal: string
  readonly signal?: AbortSignal
}

const readyLine = z.object({ ready: z.literal(true), url: z.url(), control: z.url(), model: z.string() })
const startTimeoutMs = 60_000
const stopTimeoutMs = 3000
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'

/** Starts the engine on a free port of loopback. Throws `ENGINE_UNREACHABLE` with what it printed. */
export async function startScriptedEngine(options: ScriptedOptions): Promise<ScriptedEngine> {
  const main = fileURLToPath(new URL(`../../engine/src/main.${extension}`, import.meta.url))
  const tie = new URL(`./exit-with-parent.${extension}`, import.meta.url).href
  const child = spawn(
    process.execPath,
    [
      '--import',
      tie,
      main,
      '--port=0',
      `--model=${options.profile}`,
      `--seed=${options.seed}`,
      `--journal=${options.journal}`,
    ],
    // Its own process group: Ctrl-C in the terminal is for us, and we end it after the last call.
    { stdio: ['pipe', 'pipe', 'pipe'], detached: true },
  )
  const exited = new Promise<void>((resolve) => {
    // With all that it said: a process has ended before its last words are read.
    child.once('close', () => resolve())
    child.once('error', () => resolve())
  })
  try {
    const ready = await firstLine(child, exited, options.signal)
    child.stdout.resume()
    child.stderr.resume()
    return {
      url: ready.url,
      control: ready.control,
      model: ready.model,
      pid: child.pid ?? 0,
      exited,
      [Symbol.asyncDispose]: () => stop(child, exited),
    }
  } catch (error) {
    await stop(child, exited)
    throw error
  }
}

async function firstLine(
  child: ChildProcess & { readonly stdout: NonNullable<ChildProcess['stdout']> },
  exited: Promise<void>,
  signal: AbortSignal | undefined,
): Promise<z.infer<typeof readyLine>> {
  let errors = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    errors = `${errors}${chunk.toString()}`.slice(-4000)
  })
  const lines = createInterface({ input: child.stdout })
  const limit = AbortSignal.timeout(startTimeoutMs)
  const line = once(lines, 'line', { signal: signal ? AbortSignal.any([signal, limit]) : limit })
  const outcome = await Promise.race([
    line.then(([text]) => String(text)).catch((cause: unknown) => failed('did not start in time', errors, cause)),
    exited.then(() => failed('ended at its start', errors)),
  ])
  lines.close()
  signal?.throwIfAborted()
  if (outcome instanceof PaddockError) throw outcome
  const parsed = readyLine.safeParse(jsonOrNull(outcome))
  if (!parsed.success) throw failed(`said "${outcome.slice(0, 200)}" where a ready line was due`, errors)
  return parsed.data
}

function failed(what: string, errors: string, cause?: unknown): PaddockError {
  const said = errors.trim().split('\n').slice(-3).join(' ')
  return new PaddockError('ENGINE_UNREACHABLE', `the scripted engine ${what}${said === '' ? '' : `: ${said}`}`, {
    fix: 'See its message; check engine.scripted in the configuration.',
    cause,
  })
}

/** Asks, then makes it. */
async function stop(child: ChildProcess, exited: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
  await exited
  clearTimeout(timer)
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
