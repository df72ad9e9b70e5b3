import type { IncomingMessage } from 'node:http'
import type { RequestHandler } from 'express'
import { PaddockError } from '../core/index.ts'
import { sameToken } from './token.ts'

/** Lets requests with the control token through; others are answered `CONTROL_TOKEN`. */
export function requireToken(token: string): RequestHandler {
  return (request, _response, next) => {
    if (hasToken(request, token)) next()
    else next(tokenError())
  }
}

/** True for a request (or WebSocket upgrade) that carries `Authorization: Bearer <token>`. */
export function hasToken(request: IncomingMessage, token: string): boolean {
  const given = /^Bearer\s+(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
  return given !== undefined && sameToken(given, token)
}

export function tokenError(): PaddockError {
  return new PaddockError('CONTROL_TOKEN', 'the control token is missing or wrong')
}
