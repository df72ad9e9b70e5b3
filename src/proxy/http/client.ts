import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { AnswerView, WireError } from '../dialects/contract.ts'
import { chunkOf } from './chunked.ts'

const copiedBytes = 16 * 1024

/** Who is told what becomes of a client. */
export interface ClientWatch {
  /** Once, when its connection closes early. */
  clientGone(): void
  /** Once, when the whole answer was handed to the socket. */
  clientSent(): void
  /** It reads again after it was slower than the engine. */
  clientDrained(): void
}

/**
 * The client's side of one exchange: head, writes, end, and whether everything reached the socket. Writes to a client
 * that is gone do nothing.
 */
export class Client {
  readonly view: AnswerView
  /** True from the first response byte on: an error can then only be told in-stream. */
  started = false
  /** The connection closed before the answer was fully sent. */
  gone = false
  /** Null once it has ended: answers are kept for clients that ask again, sockets are not. */
  private response: ServerResponse | null
  /** Where the chunks of a stream go; null before it has begun, and where `response` must write them. */
  private socket: Socket | null = null
  /** Where the head of a stream waits, for the first event or for the end of this turn. */
  private corked: Socket | null = null
  private watching: ClientWatch | null = null
  /** Names the call: the header that the dialect's clients read, and its value. */
  private readonly idHeader: readonly [string, string]

  constructor(response: ServerResponse, view: AnswerView, idHeader: readonly [string, string]) {
    this.response = response
    this.view = view
    this.idHeader = idHeader
    if (response.destroyed || response.closed) this.gone = true
  }

  watch(on: ClientWatch): void {
    const { response } = this
    if (response === null || this.gone) {
      this.letGo()
      on.clientGone()
      return
    }
    response.on('finish', () => {
      if (this.response === null) return
      this.letGo()
      on.clientSent()
    })
    response.on('close', () => {
      if (this.response === null) return
      this.letGo()
      this.gone = true
      on.clientGone()
    })
    this.watching = on
  }

  /** Sends the head of a stream at once, before its first event. */
  startStream(): void {
    const { response } = this
    if (response === null || this.started) return
    this.started = true
    const [idName, id] = this.idHeader
    response.writeHead(200, [...streamHeaders, idName, id])
    // Often the first event has come with the head: both leave in one write then, else the head at the end of this turn.
    this.corked = response.socket
    this.corked?.cork()
    response.flushHeaders()
    process.nextTick(uncork, this)
    this.socket = chunkedSocket(response)
  }

  /**
   * Writes bytes `[start, end)` as a piece of the stream; they stay as they are. False when the client reads more slowly
   * than the engine writes.
   */
  write(bytes: Buffer, start = 0, end = bytes.length): boolean {
    this.startStream()
    const { response, socket, watching } = this
    if (response === null) return true
    const chunk = socket === null ? bytes.subarray(start, end) : chunkOf(bytes, start, end)
    if (chunk === null) return true
    const out = socket ?? response
    const room = out.write(chunk)
    if (!room && watching !== null) out.once('drain', () => watching.clientDrained())
    // Now, and not behind all else that the engine said with it.
    this.uncork()
    return room
  }

  end(bytes?: Buffer): void {
    if (bytes === undefined) this.response?.end()
    else this.response?.end(bytes)
  }

  /** A whole JSON answer. */
  sendJson(status: number, body: Buffer): void {
    const { response } = this
    if (response === null) return
    this.started = true
    const [idName, id] = this.idHeader
    response.writeHead(status, ['content-type', 'application/json', 'content-length', body.length, idName, id])
    // Head and body in one write: as text of one byte each the body is put behind the head, as bytes it is a second buffer.
    if (body.length <= copiedBytes) response.end(body.toString('latin1'), 'latin1')
    else response.end(body)
  }

  sendError(error: WireError): void {
    const { response } = this
    if (response === null) return
    this.started = true
    response.writeHead(error.status, { ...error.headers, 'content-length': error.body.length })
    response.end(error.body)
  }

  /** Cuts the connection. */
  destroy(): void {
    this.response?.destroy()
  }

  /** What waits in the socket leaves. */
  uncork(): void {
    this.corked?.uncork()
    this.corked = null
  }

  private letGo(): void {
    this.response = null
    this.socket = null
    this.watching = null
  }
}

const streamHeaders = [
  'content-type',
  'text/event-stream; charset=utf-8',
  'cache-control',
  'no-cache',
  'x-accel-buffering',
  'no',
] as const

function uncork(client: Client): void {
  client.uncork()
}

/**
 * The socket for chunks that we frame ourselves: `response.write` corks the socket, defers to the next tick and hands it
 * three buffers for every event, which costs more than the event. Null where that is not the same thing: a client of
 * HTTP/1.0 gets no chunks, and a pipelined answer that waits for the one before has no socket yet.
 */
function chunkedSocket(response: ServerResponse): Socket | null {
  const { socket, req, chunkedEncoding } = response
  return chunkedEncoding && req.httpVersion === '1.1' && socket !== null && socket.writable ? socket : null
}
