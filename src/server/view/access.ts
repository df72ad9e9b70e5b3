import { randomBytes } from 'node:crypto'
import type { RequestHandler, Response } from 'express'
import { PaddockError } from '../../core/index.ts'
import { sameToken } from '../token.ts'

/**
 * Who may look. The printed link carries a code in its fragment, which no server and no log sees; the page changes it, by
 * POST and once, for a cookie. Cookies know no ports, so the port stands in the name.
 */
export class ViewAccess {
  readonly #token = randomBytes(32).toString('base64url')
  readonly #cookie: string
  readonly #hosts: ReadonlySet<string>
  #code: string | null = randomBytes(24).toString('base64url')

  constructor(port: number) {
    this.#cookie = `paddock-view-${port}`
    this.#hosts = new Set(['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`))
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

  /** Refuses other hosts (DNS rebinding) and pages of other origins. */
  readonly fromHere: RequestHandler = (request, _response, next) => {
    const host = request.headers.host ?? ''
    const { origin } = request.headers
    const site = request.headers['sec-fetch-site']
    if (!this.#hosts.has(host)) next(refused(`the viewer answers only under its own address, not as ${host}`))
    else if (origin !== undefined && origin !== `http://${host}`)
      next(refused(`a page of ${origin} may not ask the viewer`))
    else if (site === 'cross-site' && request.method !== 'GET') next(refused('another site may not ask the viewer'))
    else next()
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

function refused(what: string): PaddockError {
  return new PaddockError('CONTROL_TOKEN', what, { fix: 'Open the link that `paddock view` printed.' })
}

function cookieOf(header: string | undefined, name: string): string | null {
  for (const part of (header ?? '').split(';')) {
    const [key, value] = part.trim().split('=')
    if (key === name) return value ?? null
  }
  return null
}
