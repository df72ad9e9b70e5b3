import { connect, type Socket } from 'node:net'
import type { LineBreak, LineExchange, LineSink } from './contract.ts'
import { MalformedReply, type ReplyHead } from './reply-head.ts'
import { ReplyParser, type ReplyParts } from './reply-parser.ts'
import { isUnreachable } from './unreachable.ts'

/** Where an engine listens. */
export interface Address {
  readonly host: string
  readonly port: number
}

/** What a connection tells the line that it belongs to. */
export interface ConnectionOwner {
  /** It may carry the next exchange until `keepMs` from now. Called before the exchange's sink hears its end. */
  free(connection: EngineConnection, keepMs: number): void
  closed(connection: EngineConnection): void
}

const connectTimeoutMs = 10_000
const keepAliveAfterMs = 60_000
/** Larger requests are not copied behind their head. */
const copiedBytes = 16 * 1024

/**
 * All connections read into this one buffer: a read is handed on before the next one begins, and whoever keeps bytes gets a
 * copy. A buffer each would be 64 kB per open stream.
 */
const reading = Buffer.allocUnsafeSlow(64 * 1024)

/** One connection to an engine and the exchange that it carries. */
export class EngineConnection {
  private readonly socket: Socket
  private readonly owner: ConnectionOwner
  private exchange: Exchange | null = null
  /** It was closed from this side. */
  dropped = false
  private connected = false
  private cause: Error | null = null
  private readonly connecting: NodeJS.Timeout

  constructor(address: Address, owner: ConnectionOwner) {
    this.owner = owner
    this.socket = connect({
      ...address,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveAfterMs,
      onread: { buffer: reading, callback: (size) => this.received(size) },
    })
    this.connecting = setTimeout(() => this.socket.destroy(connectTimeout()), connectTimeoutMs)
    this.socket.once('connect', () => {
      this.connected = true
      clearTimeout(this.connecting)
    })
    this.socket.on('error', (cause) => {
      this.cause = cause
    })
    this.socket.once('end', () => this.ended())
    this.socket.once('close', () => this.closed())
  }

  /** Sends a request; `head` is complete and in latin1. Only for a connection that is free. */
  carry(head: string, body: Buffer, sink: LineSink): LineExchange {
    const exchange = new Exchange(this, this.socket, sink)
    this.exchange = exchange
    this.socket.ref()
    if (body.length <= copiedBytes) {
      const request = Buffer.allocUnsafe(head.length + body.length)
      request.write(head, 'latin1')
      body.copy(request, head.length)
      this.socket.write(request)
    } else {
      this.socket.cork()
      this.socket.write(head, 'latin1')
      this.socket.write(body)
      this.socket.uncork()
    }
    return exchange
  }

  destroy(): void {
    this.dropped = true
    this.socket.destroy()
  }

  private received(size: number): boolean {
    const { exchange } = this
    if (exchange === null) {
      // Nobody asked: what an engine says out of turn would be taken for the answer to the next request.
      this.socket.destroy()
      return true
    }
    try {
      exchange.parser.push(reading, size)
    } catch (cause) {
      if (!(cause instanceof MalformedReply)) throw cause
      this.break({ cause, kind: 'malformed' })
      return true
    }
    if (exchange.parser.done && this.exchange === exchange) this.finish(exchange)
    return true
  }

  private finish(exchange: Exchange): void {
    this.exchange = null
    const { head, overrun } = exchange.parser
    const keepMs = head?.keepMs ?? 0
    // A server that answered before it had read the request may not read the rest of it.
    if (keepMs === 0 || overrun || this.socket.writableLength > 0 || this.socket.destroyed) this.socket.destroy()
    else {
      exchange.resume()
      // A connection that waits for work keeps no process alive.
      this.socket.unref()
      this.owner.free(this, keepMs)
    }
    exchange.tellEnd()
  }

  private ended(): void {
    const { exchange } = this
    if (exchange?.parser.close() === true) this.finish(exchange)
    else this.socket.destroy()
  }

  private closed(): void {
    clearTimeout(this.connecting)
    this.owner.closed(this)
    const cause = this.cause ?? new Error('other side closed')
    this.break({ cause, kind: !this.connected && isUnreachable(cause) ? 'unreachable' : 'died' })
  }

  private break(broke: LineBreak): void {
    const { exchange } = this
    this.exchange = null
    this.socket.destroy()
    exchange?.tellBroke(broke)
  }
}

function connectTimeout(): Error {
  return Object.assign(new Error(`no connection within ${connectTimeoutMs / 1000} s`), { code: 'CONNECT_TIMEOUT' })
}

/** One request and its answer on a connection. */
class Exchange implements LineExchange, ReplyParts {
  readonly parser = new ReplyParser(this)
  private readonly connection: EngineConnection
  private readonly socket: Socket
  private sink: LineSink | null
  private paused = false

  constructor(connection: EngineConnection, socket: Socket, sink: LineSink) {
    this.connection = connection
    this.socket = socket
    this.sink = sink
  }

  head({ status, headers }: ReplyHead): void {
    this.sink?.head(status, headers)
  }

  data(bytes: Buffer): void {
    this.sink?.data(bytes)
  }

  pause(): void {
    if (this.sink === null) return
    this.paused = true
    this.socket.pause()
  }

  resume(): void {
    if (this.sink === null || !this.paused) return
    this.paused = false
    this.socket.resume()
  }

  abort(): void {
    if (this.sink === null) return
    this.sink = null
    this.connection.destroy()
  }

  tellEnd(): void {
    const { sink } = this
    this.sink = null
    sink?.end()
  }

  tellBroke(broke: LineBreak): void {
    const { sink } = this
    this.sink = null
    sink?.broke(broke)
  }
}
