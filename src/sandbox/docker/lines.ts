import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { frame, FrameReader } from './frames.ts'

/** Frames of a relay without a socket (sandboxes/relay/relay.c holds the other end): `OPEN` is the relay's alone. */
const kind = { open: 65, data: 66, end: 67, reset: 68, passed: 69 } as const

/** Bytes of one line that may be under way and not yet passed on, each way. */
const windowBytes = 64 << 10
/** A line's largest piece, so that others have their turn. */
const pieceBytes = 32 << 10

/**
 * The model path of a box whose daemon does not see our socket: connections of the box come as lines over the relay's
 * attached stream, and each is a connection to the same socket here. So whoever serves the socket sees no difference.
 * Held bytes are bounded by the windows. When the stream ends, all of them are cut.
 */
export class RelayLines {
  readonly #stream: Duplex
  readonly #socketPath: string
  readonly #lines = new Map<number, Line>()
  readonly #frames: FrameReader

  constructor(stream: Duplex, socketPath: string) {
    this.#stream = stream
    this.#socketPath = socketPath
    this.#frames = new FrameReader((type, id, payload) => this.#take(type, id, payload))
    stream.once('close', () => {
      for (const line of this.#lines.values()) line.cut()
    })
  }

  /** What the relay wrote to its stdout. */
  push(piece: Buffer): void {
    this.#frames.push(piece)
  }

  #take(type: number, id: number, payload: Buffer): void {
    if (type === kind.open) return this.#open(id)
    const line = this.#lines.get(id)
    switch (type) {
      case kind.data:
        return line?.write(Buffer.from(payload))
      case kind.end:
        return line?.end()
      case kind.reset:
        this.#lines.delete(id)
        return line?.cut()
      case kind.passed:
        return line?.passed(payload.readUInt32LE(0))
    }
  }

  #open(id: number): void {
    const send: Send = (type, payload) => {
      if (this.#stream.writable) this.#stream.write(frame(type, id, payload))
    }
    const line = new Line(connect({ path: this.#socketPath, allowHalfOpen: true }), send, (isWhole) => {
      // Not ours any more where the relay has cut it.
      if (this.#lines.get(id) === line && !isWhole) send(kind.reset)
      if (this.#lines.get(id) === line) this.#lines.delete(id)
    })
    this.#lines.set(id, line)
  }
}

type Send = (type: number, payload?: Uint8Array) => void

class Line {
  readonly #socket: Socket
  readonly #send: Send
  #credit = windowBytes
  #passed = 0
  #saidEnd = false
  #heardEnd = false

  constructor(socket: Socket, send: Send, closed: (isWhole: boolean) => void) {
    this.#socket = socket
    this.#send = send
    socket.on('error', () => undefined)
    socket.on('readable', () => this.#tell())
    socket.once('end', () => {
      this.#saidEnd = true
      send(kind.end)
    })
    socket.once('close', () => closed(this.#saidEnd && this.#heardEnd))
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes, (error) => {
      if (error) return
      this.#passed += bytes.length
      // A quarter of the window at a time, and what is left once nothing waits.
      if (this.#passed < windowBytes / 4 && this.#socket.writableLength > 0) return
      const count = Buffer.alloc(4)
      count.writeUInt32LE(this.#passed)
      this.#passed = 0
      this.#send(kind.passed, count)
    })
  }

  end(): void {
    this.#heardEnd = true
    this.#socket.end()
  }

  cut(): void {
    this.#socket.destroy()
  }

  passed(bytes: number): void {
    this.#credit += bytes
    this.#tell()
  }

  #tell(): void {
    while (this.#credit > 0 && this.#socket.readableLength > 0) {
      const most = Math.min(this.#credit, pieceBytes, this.#socket.readableLength)
      const bytes: unknown = this.#socket.read(most)
      if (!Buffer.isBuffer(bytes)) return
      this.#credit -= bytes.length
      this.#send(kind.data, bytes)
    }
    // With nothing left to read this is what brings the `end`.
    if (this.#socket.readableLength === 0) this.#socket.read(0)
  }
}
