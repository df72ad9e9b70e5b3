import type { ErrorRequestHandler, RequestHandler } from 'express'
import { isPaddockError, PaddockError } from '../core/index.ts'

/** Answers what no route took. */
export const noRoute: RequestHandler = (request, _response, next) => {
  next(
    new PaddockError('NOT_FOUND', `no control route ${request.method} ${request.path}`, {
      fix: 'See docs/reference/routes.md for the control routes.',
    }),
  )
}

/** The one place where a failure becomes an answer: `{"error": {code, family, message, fix, data}}`. */
export const answerFailure: ErrorRequestHandler = (error: unknown, _request, response, next) => {
  if (response.headersSent) {
    next(error)
    return
  }
  const known = asControlError(error)
  response.status(known.status).json({ error: known })
}

/** The same as a line of an answer that has begun. */
export function failureOf(error: unknown): { readonly error: PaddockError } {
  return { error: asControlError(error) }
}

/** express and its body parser raise `http-errors` objects: `type` and `status` tell which. */
function asControlError(error: unknown): PaddockError {
  if (isPaddockError(error)) return error
  const message = error instanceof Error ? error.message : String(error)
  const type = typeof error === 'object' && error !== null && 'type' in error ? error.type : null
  if (type === 'entity.too.large') {
    const limit = typeof error === 'object' && error !== null && 'limit' in error ? Number(error.limit) : 2 ** 20
    return new PaddockError('BODY_TOO_LARGE', `a body of this route is at most ${limit / 2 ** 20} MB`, {
      fix: 'Send a smaller body.',
    })
  }
  if (type === 'entity.parse.failed') return new PaddockError('BODY_INVALID_JSON', message)
  const status = typeof error === 'object' && error !== null && 'status' in error ? error.status : null
  if (typeof status === 'number' && status >= 400 && status < 500)
    return new PaddockError('BODY_INVALID_SHAPE', message)
  return new PaddockError('INTERNAL', message, { cause: error })
}
