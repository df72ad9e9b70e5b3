import { chmodSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { ModelSocket, ModelSocketHandlers } from '../contract/index.ts'
import { ownedDirectory, type OwnedDirectory, runtimeDirectory } from './host-dirs.ts'

/**
 * A unix socket in a directory of its own, which is what a relay gets to see. The directory above is closed to other
 * users of the host; the socket itself is open, because the relay runs as another uid.
 */
export class DockerSlot implements ModelSocket {
  readonly id: string
  readonly directory: string
  readonly socketPath: string
  readonly #owned: OwnedDirectory
  readonly #server: Server
  /** All of them: `closeAllConnections` forgets those that a CONNECT took over. */
  readonly #sockets = new Set<Duplex>()
  /** Told once the socket is gone. */
  onClosed: () => void = () => undefined
  #handlers: ModelSocketHandlers | null = null
  #closed: Promise<void> | null = null
  /** Slots of boxes that were made ahead and now serve what this one serves. */
  readonly #lent = new Set<DockerSlot>()

  private constructor(owned: OwnedDirectory) {
    this.#owned = owned
    this.id = owned.id
    this.directory = owned.path
    this.socketPath = join(owned.path, 'sock')
    // A model call may think for long and an upload may be slow: no clock of ours ends either.
    this.#server = createServer({ requestTimeout: 0, keepAliveTimeout: 65_000 })
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    this.#server.on('request', (request, response) => this.#request(request, response))
    this.#server.on('connect', (request, socket, head) => this.#connect(request, socket, head))
  }

  static async open(): Promise<DockerSlot> {
    const socket = new DockerSlot(ownedDirectory(runtimeDirectory()))
    await new Promise<void>((resolve, reject) => {
      socket.#server.once('error', reject).listen(socket.socketPath, () => resolve())
    })
    chmodSync(socket.socketPath, 0o666)
    return socket
  }

  serve(handlers: ModelSocketHandlers): void {
    this.#handlers = handlers
  }

  /** `other` serves whatever this one serves, and is cut and closed with it. */
  lend(other: DockerSlot): void {
    this.#lent.add(other)
    other.serve({
      request: (request, response) => this.#request(request, response),
      connect: (request, socket, head) => this.#connect(request, socket, head),
    })
  }

  unbind(): void {
    this.#handlers = null
    for (const other of this.#lent) other.#cut()
    this.#cut()
  }

  #cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): Promise<void> {
    this.#handlers = null
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    const others = [...this.#lent].map((other) => other.close())
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
      this.#cut()
    })
    this.#owned.remove()
    this.onClosed()
    await Promise.all(others)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #request(request: IncomingMessage, response: ServerResponse): void {
    if (this.#handlers !== null) return this.#handlers.request(request, response)
    response.writeHead(503, { 'content-type': 'text/plain', connection: 'close' }).end('no session is bound\n')
  }

  #connect(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#handlers?.connect !== undefined) return this.#handlers.connect(request, socket, head)
    socket.on('error', () => undefined)
    socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
  }
}
