import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { originOf, PaddockError } from '../../core/index.ts'
import type { Listener, ProxyLimits } from '../contract.ts'
import { chatError } from '../dialects/chat/errors.ts'

/**
 * A plain `node:http` server with bounded headers and bounded time to send a request. No request timeout applies once
 * the request is read: an answer may take as long as the engine does.
 */
export async function openListener(options: {
  readonly host: string
  readonly port: number
  readonly limits: ProxyLimits
  /** `passed`: the connection was given to us by whoever accepted it. */
  readonly handle: (request: IncomingMessage, response: ServerResponse, passed: boolean) => void
}): Promise<Listener> {
  const { limits } = options
  const given = new WeakSet<Socket>()
  const server = createServer(
    {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: Math.max(20, Math.min(5000, limits.headersTimeoutMs / 2)),
      keepAliveTimeout: 65_000,
      noDelay: true,
    },
    (request, response) => options.handle(request, response, given.has(request.socket)),
  )
  server.on('clientError', (cause: NodeJS.ErrnoException, socket: Socket) => refuseRaw(cause, socket))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : options.port
  return {
    origin: originOf(options.host, port),
    port,
    adopt: (socket, read) => {
      given.add(socket)
      // As a server's own sockets are: a client that has sent its request may close its side.
      socket.allowHalfOpen = true
      socket.setNoDelay(true)
      if (read.length > 0) socket.unshift(read)
      server.emit('connection', socket)
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
        // What still runs was settled before; a client that does not read must not keep us.
        setTimeout(() => server.closeAllConnections(), 200).unref()
      }),
  }
}

/** Answers what never became a request: bad syntax, headers too large, headers too slow. */
function refuseRaw(cause: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || socket.destroyed || cause.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const [status, text, message] =
    cause.code === 'HPE_HEADER_OVERFLOW'
      ? [431, 'Request Header Fields Too Large', 'The request headers are too large.']
      : cause.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'Request Timeout', 'The request was sent too slowly.']
        : [400, 'Bad Request', 'The request is not valid HTTP.']
  const { body } = chatError(new PaddockError('BODY_INVALID_SHAPE', message, { fix: 'Send a well-formed request.' }))
  socket.end(
    `HTTP/1.1 ${status} ${text}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body.toString()}`,
  )
}
