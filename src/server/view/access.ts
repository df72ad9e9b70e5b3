import { randomBytes } from 'node:crypto'
import type { RequestHandler, Response } from 'express'
import { PaddockError } from '../../core/index.ts'
import { requireOwnPage } from '../../proxy/index.ts'
import { sameToken } from '../token.ts'

/**
 * Who may look. The printed link carries a code in its fragment, which no server and no log sees; the page changes it, by
 * POST and once, for a cookie. Cookies know no ports, so the port stands in the name.
 */
export class ViewAccess {
  readonly #token = randomBytes(32).toString('base64url')
  readonly #cookie: string
  #code: string | null = randomBytes(24).toString('base64url')

  constructor(port: number) {
    this.#cookie = `paddock-view-${port}`
  }

  /** The code of the printed link; null once it was used. */
  get code(): string | null {
    return this.#code
  }

  /** A fresh code, for a browser that lost its cookie. */
  renew(): string {
    this.#code = randomBytes(24).toString('base64url')
    return this.#code
  }

  /** Refuses names that were made to lead here (DNS rebinding) and pages of other origins. Throws `ORIGIN_REFUSED`. */
  readonly ownPage: RequestHandler = (request, _response, next) => {
    requireOwnPage(request.headers)
    next()
  }

  /** Lets requests with the cookie through. */
  readonly signedIn: RequestHandler = (request, _response, next) => {
    const given = cookieOf(request.headers.cookie, this.#cookie)
    if (given !== null && sameToken(given, this.#token)) next()
    else next(new PaddockError('CONTROL_TOKEN', 'this browser is not signed in to the viewer', { fix: signInFix }))
  }

  /** Changes a code for the cookie. Throws `CONTROL_TOKEN` for a wrong or used one. */
  signIn(code: string, response: Response): void {
    if (this.#code === null || !sameToken(code, this.#code)) {
      throw new PaddockError('CONTROL_TOKEN', 'the code of this link was used already, or is not of this viewer', {
        fix: signInFix,
      })
    }
    this.#code = null
    response.cookie(this.#cookie, this.#token, { httpOnly: true, sameSite: 'strict', path: '/' })
  }
}

const signInFix = 'Open the newest link that `paddock view` printed; Enter in its terminal prints a fresh one.'

function cookieOf(header: string | undefined, name: string): string | null {
  for (const part of (header ?? '').split(';')) {
    const [key, value] = part.trim().split('=')
    if (key === name) return value ?? null
  }
  return null
}
