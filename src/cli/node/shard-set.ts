import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { type Front, openFront } from '../../proxy/index.ts'
import { exitCode } from '../exit.ts'
import { fromShard, type ToShard } from './shard-messages.ts'

export interface ShardSetOptions {
  /** Of the one listener. */
  readonly host: string
  readonly port: number
  readonly shards: number
  /** Starts the process of a shard, with a channel for messages. */
  readonly start: (index: number) => ChildProcess
  /** A process that was open has ended by a signal and is started again. */
  readonly again: (index: number, signal: string) => void
  /** All shards are open for the first time. */
  readonly ready: (origin: string) => void
  /** Stops all. */
  readonly signal: AbortSignal
}

interface Running {
  readonly child: ChildProcess
  /** Connections on their way to it. */
  readonly given: Set<Socket>
  origin: string | null
}

interface Given {
  readonly socket: Socket
  readonly read: Buffer
}

/** A process that is killed again and again does not take all processor time. */
const againMs = 1000

/** The processes of a node and the one listener in front of them, until all have ended. */
export class ShardSet {
  readonly #options: ShardSetOptions
  readonly #running: (Running | null)[]
  /** Connections for shards that are not open, by shard. */
  readonly #waiting: Given[][]
  /** Shards that have been open once. */
  readonly #opened = new Set<number>()
  readonly #firstOpen = Promise.withResolvers<void>()
  readonly #allOpen = Promise.withResolvers<void>()
  readonly #stop = new AbortController()
  #origin = ''
  #code = 0

  private constructor(options: ShardSetOptions) {
    const { shards } = options
    this.#options = options
    this.#running = Array.from({ length: shards }, () => null)
    this.#waiting = Array.from({ length: shards }, () => [])
  }

  /**
   * Runs all shards until the signal aborts or one of them ends by itself, which ends the others. Gives the exit code of the first one that
   * failed. One that a signal ends is started again.
   */
  static async run(options: ShardSetOptions): Promise<number> {
    const set = new ShardSet(options)
    const { host, port, shards } = options
    const give: Parameters<typeof openFront>[0]['give'] = (shard, socket, read) => set.#give(shard, { socket, read })
    const front = await openFront({ host, port, shards, give })
    try {
      return await set.#run(front)
    } finally {
      front.close()
      for (const { socket } of set.#waiting.flat()) socket.destroy()
    }
  }

  async #run(front: Front): Promise<number> {
    const { signal, shards, ready } = this.#options
    this.#origin = front.origin
    const onAbort = (): void => this.#stop.abort()
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    this.#stop.signal.addEventListener('abort', () => {
      for (const running of this.#running) running?.child.kill('SIGTERM')
    })
    try {
      // What is wrong with all of them is said by the first one alone.
      const first = this.#keep(0)
      await Promise.race([this.#firstOpen.promise, first])
      const others = this.#stop.signal.aborted ? [] : Array.from({ length: shards - 1 }, (_, at) => this.#keep(at + 1))
      const all = Promise.all([first, ...others])
      await Promise.race([all, this.#allOpen.promise])
      if (!this.#stop.signal.aborted) ready(front.origin)
      await all
    } finally {
      this.#stop.abort()
      signal.removeEventListener('abort', onAbort)
    }
    return this.#code
  }

  /** Runs a shard, process after process. Resolves when it is not to be started again. */
  async #keep(index: number): Promise<void> {
    for (;;) {
      if (this.#stop.signal.aborted) return
      const { code, signal } = await this.#process(index)
      if (code !== 0 && code !== null && code !== exitCode.cancelled) this.#code ||= code
      if (this.#stop.signal.aborted) return
      const isFailed = signal === null ? this.#code !== 0 : !this.#opened.has(index)
      if (isFailed) {
        this.#code ||= exitCode.infra
        this.#stop.abort()
        return
      }
      this.#options.again(index, signal ?? 'a signal')
      await setTimeout(againMs, undefined, { signal: this.#stop.signal }).catch(() => undefined)
    }
  }

  async #process(index: number): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }> {
    const child = this.#options.start(index)
    const running: Running = { child, given: new Set(), origin: null }
    this.#running[index] = running
    child.on('message', (message) => this.#heard(index, running, fromShard.parse(message).origin))
    say(child, { type: 'begin', origin: this.#origin })
    try {
      const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
      return { code, signal }
    } finally {
      this.#running[index] = null
      for (const socket of running.given) socket.destroy()
      this.#tellOrigins()
    }
  }

  #heard(index: number, running: Running, origin: string | null): void {
    running.origin = origin
    this.#tellOrigins()
    if (origin === null) return
    for (const given of this.#waiting[index]?.splice(0) ?? []) this.#give(index, given)
    this.#opened.add(index)
    if (index === 0) this.#firstOpen.resolve()
    if (this.#opened.size === this.#options.shards) this.#allOpen.resolve()
  }

  #tellOrigins(): void {
    const origins = this.#running.map((running) => running?.origin ?? null)
    for (const running of this.#running) if (running !== null) say(running.child, { type: 'shards', origins })
  }

  #give(index: number, given: Given): void {
    const running = this.#running[index]
    if (running === null || running === undefined || running.origin === null) {
      this.#waiting[index]?.push(given)
      return
    }
    const { socket, read } = given
    running.given.add(socket)
    const message: ToShard = { type: 'connection', read: read.toString('base64') }
    running.child.send(message, socket, { keepOpen: false }, (error) => {
      running.given.delete(socket)
      if (error !== null) socket.destroy()
    })
  }
}

/** One that is ending hears nothing, which its end tells anyway. */
function say(child: ChildProcess, message: ToShard): void {
  if (child.connected) child.send(message, () => undefined)
}
