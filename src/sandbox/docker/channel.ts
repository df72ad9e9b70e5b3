import type { Duplex } from 'node:stream'
import { type Clock, PaddockError } from '../../core/index.ts'
import type { BoxDeath, ExecResult, ExecSpec } from '../contract/index.ts'
import { takeBytes } from './attach-stream.ts'
import { RunningCommand } from './command.ts'
import {
  AttachReader,
  decodeExit,
  encodeExec,
  encodeSize,
  frame,
  FrameReader,
  fromBox,
  maxRequestBytes,
  stdinWindowBytes,
  type TerminalSize,
  toBox,
} from './frames.ts'
import { pieces, toRequest } from './request.ts'

/** Beyond deadline and grace: the time after which a silent supervisor is taken for dead. */
const unresponsiveAfterMs = 15_000

export interface ChannelOptions {
  readonly clock: Clock
  readonly workdir: string
  /** The supervisor does not answer, or could not kill something: the box must go. */
  readonly onBroken: (detail: string) => void
}

interface Begun {
  readonly id: number
  readonly result: Promise<ExecResult>
}

export interface TerminalCommand {
  readonly result: Promise<ExecResult>
  resize(size: TerminalSize): void
}

/**
 * Commands over the one attached stream of a box. Output is kept up to each command's limit, which the supervisor
 * enforces; input waits for the supervisor's acknowledgement. So memory here is bounded by the limits of live commands.
 */
export class Channel {
  readonly #stream: Duplex
  readonly #o: ChannelOptions
  readonly #running = new Map<number, RunningCommand>()
  readonly #background = new Map<number, () => void>()
  readonly #pings = new Map<number, () => void>()
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
    takeBytes(stream, (chunk) => attach.push(chunk))
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
    return this.#begin(spec, signal, null).result
  }

  /** Like {@link exec} in a terminal: one stream, told to `onStdout` and not kept. */
  terminal(spec: ExecSpec, size: TerminalSize, signal?: AbortSignal): TerminalCommand {
    const { id, result } = this.#begin(spec, signal, size)
    return { result, resize: (to) => this.#send(toBox.resize, id, encodeSize(to)) }
  }

  /** Resolves true when the supervisor answers in time. */
  async ping(timeoutMs: number): Promise<boolean> {
    if (this.#death !== null) return false
    const id = this.#nextId++
    const answer = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => answer.resolve(false), timeoutMs)
    this.#pings.set(id, () => answer.resolve(true))
    this.#send(toBox.ping, id)
    const answered = await answer.promise
    clearTimeout(timer)
    this.#pings.delete(id)
    return answered && this.#death === null
  }

  #begin(spec: ExecSpec, signal: AbortSignal | undefined, terminal: TerminalSize | null): Begun {
    signal?.throwIfAborted()
    const request = toRequest(spec, this.#o.workdir, terminal)
    const payload = encodeExec(request)
    if (payload.byteLength > maxRequestBytes) {
      throw new PaddockError('BOX_COMMAND_REFUSED', 'The command with its environment is longer than 1 MiB.', {
        fix: 'Pass large input by stdin or putFiles.',
      })
    }
    const startedAt = this.#o.clock.now()
    const running = new RunningCommand(this.#nextId++, spec, startedAt, terminal === null && spec.output !== 'told')
    if (this.#death !== null) return { id: running.id, result: Promise.resolve(running.dead(this.#death)) }
    this.#running.set(running.id, running)
    const abort = (): void => {
      running.abortedBy = signal
      this.#send(toBox.kill, running.id)
    }
    signal?.addEventListener('abort', abort, { once: true })
    running.watchdog = this.#watch(running, request.timeoutMs + request.graceMs + unresponsiveAfterMs)
    this.#send(toBox.exec, running.id, payload)
    if (spec.stdin !== undefined) void this.#feed(running, spec.stdin)
    const result = running.result.promise.finally(() => {
      signal?.removeEventListener('abort', abort)
      clearTimeout(running.watchdog)
      this.#running.delete(running.id)
    })
    return { id: running.id, result }
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

  /** Ends every command, background ones too: the box has written more than it may. */
  diskIsFull(): void {
    for (const running of this.#running.values()) {
      running.diskFull = true
      this.#send(toBox.kill, running.id)
    }
    this.#send(toBox.killBackground, this.#nextId++)
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

  #watch(running: RunningCommand, ms: number): NodeJS.Timeout {
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

  async #feed(running: RunningCommand, stdin: Uint8Array | string | AsyncIterable<Uint8Array>): Promise<void> {
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
      case fromBox.pong:
        return this.#pings.get(id)?.()
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
