import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** A unix socket of the host. What it serves can change while boxes are connected. */
export interface ModelSocket extends AsyncDisposable {
  /** Short, unique on this machine. */
  readonly id: string
  readonly socketPath: string
  /** From now on requests go here. */
  serve(handlers: ModelSocketHandlers): void
  /** Back to 503 for everything, and open connections are cut. */
  unbind(): void
  close(): Promise<void>
}

export interface ModelSocketHandlers {
  request(request: IncomingMessage, response: ServerResponse): void
  /** CONNECT; without it a CONNECT is answered 403. */
  connect?(request: IncomingMessage, socket: Duplex, head: Buffer): void
}
