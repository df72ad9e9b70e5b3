import { constants } from 'node:os'
import type { Duplex } from 'node:stream'
import { type Clock, PaddockError } from '../../core/index.ts'
import type { BoxDeath, ExecOutcome, ExecResult, ExecSpec } from '../contract.ts'
import {
  AttachReader,
  decodeExit,
  encodeExec,
  type ExecRequest,
  type ExitFacts,
  frame,
  FrameReader,
  fromBox,
  maxRequestBytes,
  stdinWindowBytes,
  toBox,
} from './frames.ts'

/** Beyond deadline and grace: the time after which a silent supervisor is taken for dead. */
const unresponsiveAfterMs = 15_000

export interface ChannelOptions {
  readonly clock: Clock
  readonly workdir: string
  /** The supervisor does not answer, or could not kill something: the box must go. */
  readonly onBroken: (detail: string) => void
}

/**
 * Commands over the one attached stream of a box. Output is kept up to each command's limit, which the supervisor
 * enforces; input waits for the supervisor's acknowledgement. So memory here is bounded by the limits of live commands.
 */
export class Channel {
  readonly #stream: Duplex
  readonly #o: ChannelOptions
  readonly #running = new Map<number, Running>()
  readonly #background = new Map<number, () => void>()
  readonly #hello = Promise.withResolvers<{ readonly version: number; readonly workdirMissing: boolean }>()
  #nextId = 1
  #death: BoxDeath | null = null
  #frozenSince: number | null = null
  #frozenMs = 0
  #diagnostics = ''

  constructor(stream: Duplex, options: ChannelOptions) {
    this.#stream = stream
    this.#o = options
    this.#hello.promise.catch(() => undefined)
    const frames = new FrameReader((type, id, payload) => this.#take(type, id, payload))
    const attach = new AttachReader(
      (piece) => frames.push(piece),
      (piece) => (this.#diagnostics = (this.#diagnostics + piece.toString('utf8')).slice(-4096)),
    )
    stream.on('data', (chunk: Buffer) => attach.push(chunk))
    stream.on('error', () => undefined)
  }

  /** The supervisor's first words. Rejects when the box dies before. */
  get hello(): Promise<{ readonly version: number; readonly workdirMissing: boolean }> {
    return this.#hello.promise
  }

  /** Last words of the supervisor on its own stderr. */
  get diagnostics(): string {
    return this.#diagnostics.trim()
  }

  exec(spec: ExecSpec, signal?: AbortSignal): Promise<ExecResult> {
    signal?.throwIfAborted()
    const request = toRequest(spec, this.#o.workdir)
    const payload = encodeExec(request)
    if (payload.byteLength > maxRequestBytes) {
      throw new PaddockError('BOX_COMMAND_REFUSED', 'The command with its environment is longer than 1 MiB.', {
        fix: 'Pass large input by stdin or putFiles.',
      })
    }
    const startedAt = this.#o.clock.now()
    const running = new Running(this.#nextId++, spec, startedAt)
    if (this.#death !== null) return Promise.resolve(running.dead(this.#death))
    this.#running.set(running.id, running)
    const abort = (): void => {
      running.abortedBy = signal
      this.#send(toBox.kill, running.id)
    }
    signal?.addEventListener('abort', abort, { once: true })
    running.watchdog = this.#watch(running, request.timeoutMs + request.graceMs + unresponsiveAfterMs)
    this.#send(toBox.exec, running.id, payload)
    if (spec.stdin !== undefined) void this.#feed(running, spec.stdin)
    return running.result.promise.finally(() => {
      signal?.removeEventListener('abort', abort)
      clearTimeout(running.watchdog)
      this.#running.delete(running.id)
    })
  }

  /** Kills what kept-alive commands left running. */
  killBackground(): Promise<void> {
    if (this.#death !== null) return Promise.resolve()
    const id = this.#nextId++
    return new Promise((resolve) => {
      this.#background.set(id, resolve)
      this.#send(toBox.killBackground, id)
    })
  }

  frozen(): void {
    this.#frozenSince = this.#o.clock.monotonic()
  }

  /** To be called before the box runs again: the frame waits in the pipe, so no deadline fires for frozen time. */
  thawing(): void {
    if (this.#frozenSince === null) return
    const ms = Math.ceil(this.#o.clock.monotonic() - this.#frozenSince)
    this.#frozenSince = null
    this.#frozenMs += ms
    const payload = Buffer.alloc(4)
    payload.writeUInt32LE(ms)
    this.#send(toBox.extend, 0, payload)
  }

  /** Ends every command with `box_dead`. */
  close(death: BoxDeath): void {
    if (this.#death !== null) return
    this.#death = death
    this.#hello.reject(new PaddockError('BOX_DEAD', `The box died while starting: ${death.detail}`))
    for (const running of this.#running.values()) running.settle(running.dead(death))
    for (const resolve of this.#background.values()) resolve()
    this.#stream.destroy()
  }

  #send(type: number, id: number, payload?: Uint8Array): void {
    if (this.#death === null && this.#stream.writable) this.#stream.write(frame(type, id, payload))
  }

  #watch(running: Running, ms: number): NodeJS.Timeout {
    const frozenBefore = this.#frozenMs
    const timer = setTimeout(
      () => {
        const later = this.#frozenSince === null ? this.#frozenMs - frozenBefore : unresponsiveAfterMs
        if (later > 0) running.watchdog = this.#watch(running, later)
        else this.#o.onBroken('the supervisor did not report the end of a command')
      },
      Math.min(ms, 2 ** 31 - 1),
    )
    timer.unref()
    return timer
  }

  async #feed(running: Running, stdin: Uint8Array | string | AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of pieces(stdin)) {
        for (let at = 0; at < chunk.byteLength && !running.settled; at += stdinWindowBytes / 4) {
          const piece = chunk.subarray(at, at + stdinWindowBytes / 4)
          await running.window(piece.byteLength)
          if (!running.settled) this.#send(toBox.stdin, running.id, piece)
        }
        if (running.settled) return
      }
    } catch (error) {
      running.inputError = error
      this.#send(toBox.kill, running.id)
    }
    this.#send(toBox.stdin, running.id)
  }

  #take(type: number, id: number, payload: Buffer): void {
    const running = this.#running.get(id)
    switch (type) {
      case fromBox.hello:
        return this.#hello.resolve({ version: payload.readUInt8(0), workdirMissing: payload.readUInt8(1) === 1 })
      case fromBox.stdout:
        return running?.output('stdout', payload)
      case fromBox.stderr:
        return running?.output('stderr', payload)
      case fromBox.stdinAck:
        return running?.acknowledge(payload.readUInt32LE(0))
      case fromBox.backgroundDone:
        this.#background.get(id)?.()
        this.#background.delete(id)
        return
      case fromBox.exit: {
        const facts = decodeExit(payload)
        if (facts.survivors > 0) this.#o.onBroken('a process of the box could not be killed')
        return running?.exit(facts)
      }
    }
  }
}

/** One command under way. */
class Running {
  readonly id: number
  readonly result = Promise.withResolvers<ExecResult>()
  abortedBy: AbortSignal | undefined
  inputError: unknown
  watchdog: NodeJS.Timeout | undefined
  settled = false
  readonly #spec: ExecSpec
  readonly #startedAt: number
  readonly #chunks = { stdout: new Array<Buffer>(), stderr: new Array<Buffer>() }
  #underWay = 0
  #wake: (() => void) | null = null

  constructor(id: number, spec: ExecSpec, startedAt: number) {
    this.id = id
    this.#spec = spec
    this.#startedAt = startedAt
  }

  output(stream: 'stdout' | 'stderr', piece: Buffer): void {
    // A copy: the piece is a view of a large pooled buffer that one byte of output would keep alive.
    const own = Buffer.from(piece)
    this.#chunks[stream].push(own)
    if (stream === 'stdout') this.#spec.onStdout?.(own)
    else this.#spec.onStderr?.(own)
  }

  exit(facts: ExitFacts): void {
    if (this.abortedBy !== undefined) return this.#fail(this.abortedBy.reason)
    if (this.inputError !== undefined) return this.#fail(this.inputError)
    if (facts.kind === 'refused') {
      return this.#fail(new PaddockError('BOX_COMMAND_REFUSED', `The box refused the command: ${facts.message}.`))
    }
    this.settle(this.#result(outcome(facts), facts))
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

function toRequest(spec: ExecSpec, workdir: string): ExecRequest {
  const shell = typeof spec.command === 'string'
  const argv = typeof spec.command === 'string' ? [spec.command] : spec.command
  const env = spec.env ?? {}
  const texts = [...argv, ...Object.keys(env), ...Object.values(env), spec.cwd ?? '', spec.user ?? '']
  if (argv.length === 0 || texts.some((text) => text.includes('\0')) || Object.keys(env).some((n) => /^$|=/.test(n))) {
    throw new PaddockError('BOX_COMMAND_REFUSED', 'The command is empty, or a part of it holds a NUL byte.', {
      fix: 'Pass at least a program name, no NUL bytes and environment names without "=".',
    })
  }
  return {
    timeoutMs: milliseconds(spec.timeoutMs ?? 60_000),
    graceMs: milliseconds(spec.graceMs ?? 2000),
    maxOutputBytes: spec.maxOutputBytes ?? 10 << 20,
    keepBackground: spec.background === 'keep',
    shell,
    hasStdin: spec.stdin !== undefined,
    user: spec.user ?? '',
    cwd: spec.cwd ?? workdir,
    argv,
    env,
  }
}

function milliseconds(value: number): number {
  return Math.max(0, Math.min(Math.round(value), 2 ** 32 - 1))
}

async function* pieces(stdin: Uint8Array | string | AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  if (typeof stdin === 'string') yield Buffer.from(stdin, 'utf8')
  else if (stdin instanceof Uint8Array) yield stdin
  else yield* stdin
}
