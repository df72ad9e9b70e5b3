import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { Duplex } from 'node:stream'
import { isLoopback, PaddockError, requireOwnPage } from '../core/index.ts'

/** A running server. */
export interface Served extends AsyncDisposable {
  /** `http://host:port`. */
  readonly origin: string
}

/** Serves HTTP to harnesses and tools outside of boxes. Port 0 takes a free one. Throws `PORT_IN_USE`. No authentication; pages of a browser are refused. */
export async function served(
  listener: RequestListener,
  {
    host = '127.0.0.1',
    port = 0,
    onUpgrade,
  }: {
    readonly host?: string
    readonly port?: number
    readonly onUpgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  },
): Promise<Served> {
  const server = createServer((request, response) => {
    if (!isOfPage(request, host)) return listener(request, response)
    response.writeHead(403, { 'content-type': 'application/json', connection: 'close' })
    response.end('{"detail":"Pages of a browser are not answered."}')
  })
  if (onUpgrade !== undefined) {
    server.on('upgrade', (request: IncomingMessage, socket, head) => {
      if (!isOfPage(request, host)) return onUpgrade(request, socket, head)
      socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    })
  }
  const listening = Promise.withResolvers<void>()
  server.once('error', (cause: Error) => {
    const taken = 'code' in cause && cause.code === 'EADDRINUSE'
    listening.reject(taken ? new PaddockError('PORT_IN_USE', `Port ${port} on ${host} is taken`, { cause }) : cause)
  })
  server.listen(port, host, listening.resolve)
  await listening.promise
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  return {
    origin: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    [Symbol.asyncDispose]: async () => {
      const closed = Promise.withResolvers<void>()
      server.close(() => closed.resolve())
      server.closeAllConnections()
      await closed.promise
    },
  }
}

/** Browsers say where a page comes from, and programs do not; a name that was made to lead here is not that of this machine. */
function isOfPage({ headers }: IncomingMessage, host: string): boolean {
  if (headers.origin !== undefined) return true
  if (!isLoopback(host)) return false
  try {
    requireOwnPage(headers)
    return false
  } catch {
    return true
  }
}

/** A request's body, whole. Throws `BODY_TOO_LARGE`; the answer can still be sent then. */
export async function bodyOf(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size > maxBytes) throw new PaddockError('BODY_TOO_LARGE', `The body is larger than ${maxBytes} bytes`)
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}
