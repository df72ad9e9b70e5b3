import { Agent } from 'node:http'
import { createConnection, type NetConnectOpts, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'

const readBytes = 64 << 10

type Take = (bytes: Buffer) => void

/** Sockets that were opened here, and who takes what they read once somebody does. */
const takers = new WeakMap<Duplex, { take: Take | null }>()

/**
 * Connections that read into one buffer each, used again and again. Ordinary sockets make a new 64 kB buffer per read,
 * which at a gigabyte of output is garbage faster than the collector takes it (`onread` of `net.Socket`). Until
 * {@link takeBytes} the bytes go the ordinary way, so HTTP works over it up to its upgrade.
 */
class AttachAgent extends Agent {
  override createConnection(
    options: NetConnectOpts,
    connected?: (error: Error | null, socket: Socket) => void,
  ): Socket {
    const taker: { take: Take | null } = { take: null }
    const callback = (count: number, buffer: Uint8Array): boolean => {
      const bytes = Buffer.from(buffer.buffer, buffer.byteOffset, count)
      if (taker.take === null) return socket.push(Buffer.from(bytes))
      taker.take(bytes)
      return true
    }
    const socket = createConnection({ ...options, onread: { buffer: Buffer.allocUnsafeSlow(readBytes), callback } })
    if (connected !== undefined) socket.once('connect', () => connected(null, socket))
    takers.set(socket, taker)
    return socket
  }
}

/** For a client whose connections are all upgraded and then given to {@link takeBytes}. */
export const attachAgent: Agent = new AttachAgent()

/**
 * From now on every byte of the stream goes to `take`, in order, those that came already first. What it is given holds
 * during the call only. Nothing is buffered in between: as long as `take` works, nothing is read.
 */
export function takeBytes(stream: Duplex, take: Take): void {
  const taker = takers.get(stream)
  if (taker === undefined) {
    stream.on('data', take)
    return
  }
  taker.take = take
  for (let early: unknown = stream.read(); Buffer.isBuffer(early); early = stream.read()) take(early)
}
