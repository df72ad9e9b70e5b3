import type { Response } from 'express'

/** Aborts when the client goes away, or is answered. */
export function whileThere(response: Response): AbortSignal {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  return gone.signal
}
