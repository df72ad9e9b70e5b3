import type { IncomingHttpHeaders } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { isPaddockError, originOf } from '../../core/index.ts'
import { defaultLimits } from '../limits.ts'
import { keyDigest, keyOf } from '../session/keys.ts'
import { shardOfKey } from './keys.ts'

/** The one listener of several shards. */
export interface Front {
  readonly origin: string
  readonly port: number
  /** Takes no more connections; those that were given away are the shards'. */
  close(): void
}

export interface FrontOptions {
  readonly host: string
  readonly port: number
  readonly shards: number
  /** Gives a connection to a shard, with what was read of it. Nothing more is read here. */
  readonly give: (shard: number, socket: Socket, read: Buffer) => void
}

/**
 * Reads the head of the first request of each connection, and gives the connection to the shard of its key. It answers nothing and is in
 * the way of nothing: what it cannot tell goes to the shards in turn, which pass on what is another's.
 */
export async function openFront(options: FrontOptions): Promise<Front> {
  const { shards } = options
  const { headersTimeoutMs, maxHeaderBytes } = defaultLimits
  const reading = new Set<Socket>()
  let turn = 0
  // A buffer that one byte fills: what is put back into it stops the reading of the socket at once, so that no byte is read here that
  // its shard should read.
  const server = createServer({ highWaterMark: 1, allowHalfOpen: true }, (socket) => {
    let read: Buffer = Buffer.alloc(0)
    const drop = (): void => void socket.destroy()
    const late = setTimeout(drop, headersTimeoutMs)
    const done = (): void => {
      clearTimeout(late)
      reading.delete(socket)
    }
    reading.add(socket)
    socket.on('error', drop)
    socket.once('end', drop)
    socket.once('close', done)
    socket.on('data', function onData(chunk: Buffer) {
      read = read.length === 0 ? chunk : Buffer.concat([read, chunk])
      if (!read.includes('\r\n\r\n') && read.length < maxHeaderBytes) return
      done()
      socket.off('data', onData)
      socket.off('end', drop)
      socket.pause()
      socket.unshift(chunk)
      options.give(shardOf(read, shards) ?? turn++ % shards, socket, read)
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port: options.port, host: options.host, backlog: 4096 }, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : options.port
  return {
    origin: originOf(options.host, port),
    port,
    close: () => {
      server.close()
      for (const socket of reading) socket.destroy()
    },
  }
}

/** The shard of the key in a head; null where there is none or more than one. */
function shardOf(head: Buffer, shards: number): number | null {
  const headers: IncomingHttpHeaders = {}
  const [, ...lines] = head.toString('latin1').split('\r\n\r\n', 1)[0]?.split('\r\n') ?? []
  for (const line of lines) {
    const at = line.indexOf(':')
    const name = line.slice(0, at).toLowerCase()
    if (name === 'authorization' || name === 'x-api-key' || name === 'x-goog-api-key') {
      headers[name] ??= line.slice(at + 1).trim()
    }
  }
  try {
    const key = keyOf(headers)
    return key === null ? null : shardOfKey(keyDigest(key), shards)
  } catch (error) {
    if (isPaddockError(error)) return null
    throw error
  }
}
