import { once } from 'node:events'
import { Socket } from 'node:net'
import { PaddockError } from '../../core/index.ts'
import type { Listener, Proxy, ProxyShard } from '../../proxy/index.ts'
import { type FromShard, toShard } from './shard-messages.ts'

/** This process as one of several of a node: what its parent tells it, and the connections that it is given. */
export class Shard {
  readonly place: ProxyShard
  readonly #origin: string
  #origins: readonly (string | null)[] = []
  #listener: Listener | null = null
  /** Connections that came while there was no listener. */
  #waiting: { readonly socket: Socket; readonly read: Buffer }[] = []
  readonly #onMessage = (message: unknown, socket?: unknown): void => this.#told(message, socket)
  readonly #onDisconnect = (): void => {
    // The parent is gone: what is under way is given back, as at Ctrl-C.
    process.kill(process.pid, 'SIGTERM')
  }

  private constructor(index: number, count: number, origin: string) {
    this.place = { index, count, origin: (other) => this.#origins[other] ?? null }
    this.#origin = origin
    for (const stream of [process.stdout, process.stderr]) {
      // When the parent is gone nobody reads what is said, and what is under way is given back all the same.
      stream.removeAllListeners('error')
      stream.on('error', () => undefined)
    }
    process.on('message', this.#onMessage)
    process.once('disconnect', this.#onDisconnect)
  }

  /** `text`: which of how many, `1/2`. Throws `USAGE` in a process that no node has started. */
  static async begin(text: string): Promise<Shard> {
    const [, number = '', count = ''] = /^(\d+)\/(\d+)$/.exec(text) ?? []
    if (process.send === undefined || number === '') {
      throw new PaddockError('USAGE', 'only `paddock node --shards` starts a shard')
    }
    const [first] = (await once(process, 'message')) as [unknown]
    const begin = toShard.parse(first)
    if (begin.type !== 'begin') throw new PaddockError('INTERNAL', `a shard was told ${begin.type} first`)
    return new Shard(Number(number) - 1, Number(count), begin.origin)
  }

  /** Opens what the others and given connections reach; harnesses are told the node's own origin. */
  async listen(proxy: Proxy): Promise<Listener> {
    const listener = await proxy.listen({ host: '127.0.0.1', port: 0 })
    this.#listener = listener
    this.#say({ type: 'open', origin: listener.origin })
    for (const { socket, read } of this.#waiting.splice(0)) listener.adopt(socket, read)
    return { ...listener, origin: this.#origin }
  }

  /** Its listener closes: connections wait for the next one. */
  close(): void {
    this.#listener = null
    this.#say({ type: 'open', origin: null })
  }

  /** Is told nothing more. */
  end(): void {
    process.off('message', this.#onMessage)
    process.off('disconnect', this.#onDisconnect)
    for (const { socket } of this.#waiting.splice(0)) socket.destroy()
    if (process.connected) process.disconnect()
  }

  #say(message: FromShard): void {
    if (process.connected) process.send?.(message)
  }

  #told(message: unknown, socket: unknown): void {
    const told = toShard.parse(message)
    if (told.type === 'shards') this.#origins = told.origins
    // Without one: its client has gone on the way.
    if (told.type !== 'connection' || !(socket instanceof Socket)) return
    const read = Buffer.from(told.read, 'base64')
    if (this.#listener !== null) {
      this.#listener.adopt(socket, read)
      return
    }
    socket.pause()
    socket.on('error', () => undefined)
    this.#waiting.push({ socket, read })
  }
}
