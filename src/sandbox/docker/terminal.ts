import headless from '@xterm/headless'
import { type Clock, PaddockError } from '../../core/index.ts'
import type { ExecResult, ExecSpec, Terminal, TerminalScreen, TerminalSpec } from '../contract/index.ts'
import { Asciicast } from './asciicast.ts'
import type { Channel, TerminalCommand } from './channel.ts'
import { KeyQueue } from './key-queue.ts'

const defaultTimeoutMs = 3600_000
const shell = 'if [ -x /bin/bash ]; then exec /bin/bash -l; else exec /bin/sh -l; fi'

/** A terminal over the box's channel; the screen is kept by a headless emulator, so it is what a person would see. */
export class BoxTerminal implements Terminal {
  readonly ended: Promise<ExecResult>
  readonly #emulator: headless.Terminal
  readonly #keys = new KeyQueue()
  readonly #stop = new AbortController()
  readonly #command: TerminalCommand
  readonly #cast: Asciicast
  readonly #listeners = new Set<(bytes: Uint8Array) => void>()
  readonly #waiting = new Set<() => void>()
  #over = false

  constructor(channel: Channel, spec: TerminalSpec, clock: Clock) {
    const columns = within(spec.columns ?? 80)
    const rows = within(spec.rows ?? 24)
    this.#emulator = new headless.Terminal({ cols: columns, rows, allowProposedApi: true, scrollback: 0 })
    this.#cast = new Asciicast({ columns, rows, clock, maxBytes: spec.maxRecordingBytes ?? 8 << 20 })
    const command: ExecSpec = {
      command: spec.command ?? shell,
      env: { TERM: 'xterm-256color', ...spec.env },
      ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
      ...(spec.user === undefined ? {} : { user: spec.user }),
      stdin: this.#keys,
      timeoutMs: spec.timeoutMs ?? defaultTimeoutMs,
      graceMs: 200,
      maxOutputBytes: Number.MAX_SAFE_INTEGER,
      onStdout: (bytes) => this.#output(bytes),
    }
    // Programs ask the terminal for its kind and the cursor's place; the emulator answers like one.
    this.#emulator.onData((answer) => this.#keys.push(Buffer.from(answer, 'utf8')))
    this.#command = channel.terminal(command, { columns, rows }, this.#stop.signal)
    this.ended = this.#command.result.catch((error: unknown) => {
      if (error !== this.#stop.signal.reason) throw error
      return closedByCaller(clock.now())
    })
    const over = (): void => {
      this.#over = true
      this.#keys.end()
      for (const wake of this.#waiting) wake()
    }
    this.ended.then(over, over)
  }

  write(keys: string | Uint8Array): void {
    this.#keys.push(typeof keys === 'string' ? Buffer.from(keys, 'utf8') : keys)
  }

  resize(columns: number, rows: number): void {
    const size = { columns: within(columns), rows: within(rows) }
    this.#emulator.resize(size.columns, size.rows)
    this.#cast.resized(size)
    this.#command.resize(size)
  }

  async screen(): Promise<TerminalScreen> {
    // The emulator works in turns of its own: what was written before this empty piece has then been drawn.
    await new Promise<void>((resolve) => this.#emulator.write('', resolve))
    const { cols: columns, rows, buffer } = this.#emulator
    const { active } = buffer
    const lines = Array.from({ length: rows }, (_, row) => active.getLine(active.baseY + row)?.translateToString(true))
    return {
      lines: lines.map((line) => line?.trimEnd() ?? ''),
      cursor: { column: active.cursorX, row: active.cursorY },
      columns,
      rows,
    }
  }

  async screenWhere(accepts: (screen: TerminalScreen) => boolean, signal?: AbortSignal): Promise<TerminalScreen> {
    for (;;) {
      signal?.throwIfAborted()
      const changed = this.#change(signal)
      const screen = await this.screen()
      if (accepts(screen)) {
        changed.leave()
        return screen
      }
      if (this.#over) {
        changed.leave()
        throw new PaddockError('BOX_DEAD', 'The terminal ended before its screen was the wanted one.', {
          data: { screen: screen.lines.join('\n').trimEnd() },
        })
      }
      await changed.event
    }
  }

  recording(): string {
    return this.#cast.toString()
  }

  onOutput(listener: (bytes: Uint8Array) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): Promise<ExecResult> {
    this.#stop.abort(new DOMException('the terminal was closed', 'AbortError'))
    return this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #output(view: Uint8Array): void {
    // The emulator draws later.
    const bytes = Buffer.from(view)
    this.#cast.output(bytes)
    this.#emulator.write(bytes)
    for (const listener of this.#listeners) listener(bytes)
    for (const wake of this.#waiting) wake()
  }

  /** The next output, end or abort. Asked for before the screen is looked at, so that nothing falls in between. */
  #change(signal: AbortSignal | undefined): { readonly event: Promise<void>; leave(): void } {
    const { promise, resolve } = Promise.withResolvers<void>()
    const leave = (): void => {
      this.#waiting.delete(wake)
      signal?.removeEventListener('abort', wake)
    }
    const wake = (): void => {
      leave()
      resolve()
    }
    this.#waiting.add(wake)
    signal?.addEventListener('abort', wake, { once: true })
    return { event: promise, leave }
  }
}

function within(cells: number): number {
  return Math.max(2, Math.min(1000, Math.round(cells)))
}

function closedByCaller(now: number): ExecResult {
  return {
    kind: 'signaled',
    signal: 'SIGKILL',
    stdout: new Uint8Array(0),
    stderr: new Uint8Array(0),
    truncated: { stdout: 0, stderr: 0 },
    killed: 0,
    oomKills: 0,
    startedAt: now,
    durationMs: 0,
  }
}
