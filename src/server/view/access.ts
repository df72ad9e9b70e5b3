import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { RequestHandler, Response } from 'express'
import { PaddockError, requireOwnPage, sha256 } from '../../core/index.ts'
import { machineToken, rowOf, validToken, sameToken } from '../../access/index.ts'

/** Whose browser asks. */
export interface Viewer {
  /** Name of the token that it signed in with; of the machine's own where it came by the printed link. */
  readonly name: string
  /** The token itself, to be handed on to an owner; null: it came by the link. */
  readonly token: string | null
  readonly annotates: boolean
}

export interface ViewAccessOptions {
  readonly port: number
  /** Data directory, whose tokens sign in as well; null: only the printed link does. */
  readonly tokensOf: string | null
  /** Whether whoever came by the link may write. */
  readonly annotates: boolean
}

/**
 * Who may look, and who may write. The printed link carries a code in its fragment, which no server and no log sees; the page changes it, by
 * POST and once, for a cookie. Cookies know no ports, so the port stands in the name. Where people annotate, a token of theirs is as good.
 */
export class ViewAccess {
  readonly #o: ViewAccessOptions
  readonly #cookie: string
  /** By the hash of a cookie: the token that it was given for, null for a link. */
  readonly #signedIn = new Map<string, string | null>()
  #code: string | null = randomBytes(24).toString('base64url')

  constructor(o: ViewAccessOptions) {
    this.#o = o
    this.#cookie = `paddock-view-${o.port}`
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

  /** Lets requests with a cookie through. Throws `CONTROL_TOKEN`. */
  readonly signedIn: RequestHandler = (request, _response, next) => {
    this.viewer(request)
    next()
  }

  /** Lets those through who may write. Throws `CONTROL_TOKEN`, `ROLE_REFUSED`. */
  readonly mayAnnotate: RequestHandler = (request, _response, next) => {
    const { annotates, name } = this.viewer(request)
    if (!annotates) throw new PaddockError('ROLE_REFUSED', `the token ${name} may look here, and not annotate`)
    next()
  }

  /** Whose browser this is. A token that ended or was revoked since opens nothing. Throws `CONTROL_TOKEN`. */
  viewer(request: IncomingMessage): Viewer {
    const given = cookieOf(request.headers.cookie, this.#cookie)
    const token = given === null ? undefined : this.#signedIn.get(sha256(given))
    if (token === undefined) {
      throw new PaddockError('CONTROL_TOKEN', 'this browser is not signed in to the viewer', { fix: signInFix })
    }
    if (token === null) return { name: machineToken, token, annotates: this.#o.annotates }
    return this.#viewerOf(token)
  }

  /** Changes a code for the cookie. Throws `CONTROL_TOKEN` for a wrong or used one. */
  signIn(code: string, response: Response): void {
    if (this.#code === null || !sameToken(code, this.#code)) {
      throw new PaddockError('CONTROL_TOKEN', 'the code of this link was used already, or is not of this viewer', {
        fix: signInFix,
      })
    }
    this.#code = null
    this.#give(null, response)
  }

  /** Changes a token for the cookie. Throws `CONTROL_TOKEN` for one that opens nothing here. */
  signInWith(token: string, response: Response): void {
    this.#viewerOf(token)
    this.#give(token, response)
  }

  #viewerOf(token: string): Viewer {
    const { tokensOf } = this.#o
    const record = tokensOf === null ? null : validToken(tokensOf, token, Date.now())
    const judges = rowOf('POST', '/rollouts/any/verdicts')?.row.may ?? []
    const lookers = rowOf('GET', '/rollouts/any')?.row.may ?? []
    if (record === null || !lookers.includes(record.role)) {
      throw new PaddockError('CONTROL_TOKEN', 'the token is wrong, over or revoked, or signs nobody in here', {
        fix: 'Sign in with a token that is valid: `paddock token list` shows which are.',
      })
    }
    return { name: record.name, token, annotates: judges.includes(record.role) }
  }

  #give(token: string | null, response: Response): void {
    const cookie = randomBytes(32).toString('base64url')
    this.#signedIn.set(sha256(cookie), token)
    response.cookie(this.#cookie, cookie, { httpOnly: true, sameSite: 'strict', path: '/' })
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
