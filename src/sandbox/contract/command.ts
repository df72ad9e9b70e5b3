import type { EventBody } from '../../core/index.ts'
import type { BoxDeath } from './death.ts'

export interface ExecSpec {
  /** Program and arguments, or a line for `bash -c` (`sh -c` where there is no bash). */
  readonly command: readonly string[] | string
  readonly env?: Readonly<Record<string, string>>
  /** Default: the box's workdir. */
  readonly cwd?: string
  /** Name or uid. Only in `root` boxes can it differ from the box's user. */
  readonly user?: string
  readonly stdin?: Uint8Array | string | AsyncIterable<Uint8Array>
  /** SIGTERM goes to the whole tree at the deadline. Default 60 s. */
  readonly timeoutMs?: number
  /** SIGKILL follows after this. Default 2 s. */
  readonly graceMs?: number
  /** What is kept per stream; the rest is counted. Default 10 MiB. */
  readonly maxOutputBytes?: number
  /** Told of each piece as it comes; nothing more is read from the box meanwhile. */
  readonly onStdout?: (chunk: Uint8Array) => void
  readonly onStderr?: (chunk: Uint8Array) => void
  /**
   * `kept` (default): in the result, up to `maxOutputBytes`. `told`: to the listeners only, however much it is: a stream
   * that lives as long as its command. What a listener is told then holds during its call only: copy what is to stay.
   */
  readonly output?: 'kept' | 'told'
  /** `kill` (default): nothing outlives the command. `keep`: what it left running lives until {@link Box.killBackground}. */
  readonly background?: 'kill' | 'keep'
  /** Role under which the command is told to the event sink; without it no event is written. */
  readonly eventRole?: Extract<EventBody, { kind: 'exec' }>['role']
  /** What the event shows in place of the command line (for commands that carry secrets or are long). */
  readonly eventCommand?: string
}

export type ExecOutcome =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'signaled'; readonly signal: string }
  | { readonly kind: 'timed_out' }
  /** The kernel killed the command for memory (its own limit, not the machine's). */
  | { readonly kind: 'oom' }
  /** An infra end: the command has no result. */
  | { readonly kind: 'box_dead'; readonly why: BoxDeath }

export type ExecResult = ExecOutcome & {
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
  /** Bytes beyond `maxOutputBytes`. */
  readonly truncated: { readonly stdout: number; readonly stderr: number }
  /** Processes that the command left behind and that were killed, as far as they were seen: 0 only where there were none. */
  readonly killed: number
  /** Processes of the box that the kernel killed for memory meanwhile, also when the command survived it. */
  readonly oomKills: number
  /** Milliseconds since the epoch, host clock. */
  readonly startedAt: number
  /** Measured in the box, without transport. */
  readonly durationMs: number
  /**
   * Why the program could not even begin (`exited` 126 or 127): it is not there, is none, or what it is loaded by (its C
   * library, its interpreter) is not there. Said by the supervisor: no command can fake it.
   */
  readonly notStarted?: string
}

export interface TerminalSpec {
  /** Default: a login shell of the command's user, `bash -l` or `sh -l`. */
  readonly command?: readonly string[] | string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly user?: string
  /** Default 80 by 24. */
  readonly columns?: number
  readonly rows?: number
  /** Everything in the terminal is killed after this. Default 1 h. */
  readonly timeoutMs?: number
  /** What the recording keeps at most; later output is on the screen only. Default 8 MiB. */
  readonly maxRecordingBytes?: number
}

/** A session in a box: keys go in, a screen comes out. Ends with its command, with {@link Terminal.close} or with the box. */
export interface Terminal extends AsyncDisposable {
  /** Sends keys as a terminal does (`\r` is Enter, `\x03` is Ctrl-C). */
  write(keys: string | Uint8Array): void
  resize(columns: number, rows: number): void
  /** What a person would see now. */
  screen(): Promise<TerminalScreen>
  /** Resolves with the first screen that the test accepts; rejects with the signal's reason, or `BOX_DEAD` at the end. */
  screenWhere(accepts: (screen: TerminalScreen) => boolean, signal?: AbortSignal): Promise<TerminalScreen>
  /** Everything so far as an asciicast v2 file (docs.asciinema.org/manual/asciicast/v2). */
  recording(): string
  /** Told of each piece of output, as it comes. Call the result to leave. */
  onOutput(listener: (bytes: Uint8Array) => void): () => void
  /** The command's own end; its streams are empty. */
  readonly ended: Promise<ExecResult>
  /** Kills everything in the terminal. Idempotent. */
  close(): Promise<ExecResult>
}

export interface TerminalScreen {
  /** One per row, without trailing blanks. */
  readonly lines: readonly string[]
  readonly cursor: { readonly column: number; readonly row: number }
  readonly columns: number
  readonly rows: number
}
