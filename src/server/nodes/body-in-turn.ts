import type { RequestHandler } from 'express'
import { whileThere } from '../while-there.ts'
import type { ByteGate } from './byte-gate.ts'

/** Stands before a body's parser: the body is read when there is room for it, which it takes until it is answered. `most`: the largest body. */
export function bodyInTurn(gate: ByteGate, most: number): RequestHandler {
  return async (request, response, next) => {
    const told = Number(request.headers['content-length'] ?? most)
    const place = await gate.enter(Math.min(told, most), whileThere(response)).catch(() => null)
    // Who asked has gone.
    if (place === null) return
    response.once('close', () => place[Symbol.dispose]())
    next()
  }
}
