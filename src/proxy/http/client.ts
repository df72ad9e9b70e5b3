import type { ServerResponse } from 'node:http'
import type { AnswerView, WireError } from '../dialects/contract.ts'

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
  private readonly response: ServerResponse
  /** Names the call, in the header that the dialect's clients read. */
  private readonly idHeader: Readonly<Record<string, string>>

  constructor(response: ServerResponse, view: AnswerView, idHeader: Readonly<Record<string, string>>) {
    this.response = response
    this.view = view
    this.idHeader = idHeader
    if (response.destroyed || response.closed) this.gone = true
  }

  /** `gone` once when the connection closes early, `sent` once when the whole answer was handed to the socket. */
  watch(on: { gone: () => void; sent: () => void; drain: () => void }): void {
    let settled = false
    this.response.once('finish', () => {
      if (settled) return
      settled = true
      on.sent()
    })
    this.response.once('close', () => {
      if (settled) return
      settled = true
      this.gone = true
      on.gone()
    })
    this.response.on('drain', on.drain)
    if (this.gone && !settled) {
      settled = true
      on.gone()
    }
  }

  /** Sends the head of a stream at once, before its first event. */
  startStream(): void {
    if (this.gone || this.started) return
    this.started = true
    this.response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      ...this.idHeader,
    })
    this.response.flushHeaders()
  }

  /** False when the client reads more slowly than the engine writes. */
  write(bytes: Buffer): boolean {
    if (this.gone) return true
    this.startStream()
    return this.response.write(bytes)
  }

  end(bytes?: Buffer): void {
    if (this.gone) return
    if (bytes === undefined) this.response.end()
    else this.response.end(bytes)
  }

  /** A whole JSON answer. */
  sendJson(status: number, body: Buffer): void {
    if (this.gone) return
    this.started = true
    this.response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': body.length,
      ...this.idHeader,
    })
    this.response.end(body)
  }

  sendError(error: WireError): void {
    if (this.gone) return
    this.started = true
    this.response.writeHead(error.status, { ...error.headers, 'content-length': error.body.length })
    this.response.end(error.body)
  }

  /** Cuts the connection. */
  destroy(): void {
    this.response.destroy()
  }
}
