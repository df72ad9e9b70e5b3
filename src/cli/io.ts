import { once } from 'node:events'
import type { EnvironmentVariables } from '../config/index.ts'
import { calledHere } from './called.ts'

/** Where a command reads from and writes to; tests bring their own. */
export interface Io {
  /** Results. */
  out(text: string): void
  /** Progress, notices, errors. */
  err(text: string): void
  /** A line that is rewritten in place on a terminal and not shown elsewhere; null takes it away. */
  status(text: string | null): void
  readonly env: EnvironmentVariables
  readonly cwd: string
  /** The words that start this program again, as {@link asTyped} puts them into texts; default: `paddock`. */
  readonly called?: string
  readonly colour: boolean
  /** Width of the terminal; null when the output goes to a file or pipe. */
  readonly columns: number | null
  /** Aborted by the first Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal
}

/** The process's own streams. A closed pipe (`paddock list | head`) ends the process quietly. */
export function processIo(signal: AbortSignal): Io {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
  })
  const isTerminal = process.stdout.isTTY === true
  const line = new StatusLine()
  return {
    out: (text) => line.around(() => process.stdout.write(`${text}\n`)),
    err: (text) => line.around(() => process.stderr.write(`${text}\n`)),
    status: (text) => line.set(text),
    env: process.env,
    cwd: process.cwd(),
    called: calledHere(),
    colour: isTerminal && !process.env['NO_COLOR'],
    columns: isTerminal ? process.stdout.columns : null,
    signal,
  }
}

/** Keeps one line at the bottom of a terminal. Other output takes it away and puts it back. */
class StatusLine {
  readonly #shown = process.stderr.isTTY
  #text: string | null = null

  set(text: string | null): void {
    this.#erase()
    this.#text = text
    this.#draw()
  }

  around(write: () => void): void {
    this.#erase()
    write()
    this.#draw()
  }

  #erase(): void {
    if (this.#shown && this.#text !== null) process.stderr.write('\r\u001b[2K')
  }

  #draw(): void {
    if (this.#shown && this.#text !== null)
      process.stderr.write(this.#text.slice(0, (process.stderr.columns ?? 80) - 1))
  }
}

/**
 * Aborts on the first SIGINT or SIGTERM, so that commands can clean up; the second one leaves at once with 130.
 */
export function abortOnSignals(): { readonly signal: AbortSignal; release(): void } {
  const controller = new AbortController()
  const onSignal = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(130)
    controller.abort(new Error(`${name} received`))
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return {
    signal: controller.signal,
    release: () => {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
    },
  }
}

/** Waits until the signal aborts. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}
