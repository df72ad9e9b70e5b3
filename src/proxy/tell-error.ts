import type { ServerResponse } from 'node:http'
import { isPaddockError, PaddockError } from '../core/index.ts'
import type { Dialect } from './dialects/contract.ts'

/** Answers a request with an error in the dialect's shape; a body that is still coming is not read. */
export function tellError(response: ServerResponse, cause: unknown, dialect: Dialect): void {
  const error = isPaddockError(cause)
    ? cause
    : new PaddockError('INTERNAL', 'The proxy failed.', { cause, fix: 'This is a bug: report it with the log.' })
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const wire = dialect.error(error)
  const unread = error.code === 'BODY_TOO_LARGE'
  response.writeHead(wire.status, {
    ...wire.headers,
    'content-length': wire.body.length,
    ...(unread ? { connection: 'close' } : {}),
  })
  response.end(wire.body)
}
