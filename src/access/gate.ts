import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { RequestHandler } from 'express'
import { type Clock, PaddockError, systemClock } from '../core/index.ts'
import { sameToken } from './control-token.ts'
import { type Caller, machineToken } from './roles.ts'
import { type Matched, rowOf } from './route-table.ts'
import { stillValid, type TokenRecord, validToken } from './tokens.ts'

/** So long a stream of a revoked token may live. */
const lookMs = 500

/** A request that was let in. */
export interface Admitted extends Matched {
  readonly caller: Caller
}

const admitted = new WeakMap<IncomingMessage, Admitted>()

/** Who asks, by which row of the table. Throws `INTERNAL` for a request that no gate let in. */
export function admittedAs(request: IncomingMessage): Admitted {
  const known = admitted.get(request)
  if (known !== undefined) return known
  throw new PaddockError('INTERNAL', 'this request came by no gate')
}

/** What a request says, with the name of the token that says it. */
export function givenBy<Said extends object | null>(
  request: IncomingMessage,
  said: Said,
): (Said & { readonly token: string }) | Extract<Said, null> {
  if (said === null) return said as Extract<Said, null>
  return { ...said, token: admittedAs(request).caller.name }
}

/**
 * Lets requests in by token and role. Tokens are read anew for each request, so that one that was made or revoked a moment ago
 * counts; what is still open under a token when it ends is cut off: streams, long polls, WebSockets.
 */
export class Gate {
  readonly #token: string
  readonly #directory: string
  readonly #clock: Clock
  readonly #open = new Map<Duplex, TokenRecord>()
  #looking: NodeJS.Timeout | null = null

  /** `token` is the machine's own, of role admin; the others are those of the data directory. */
  constructor(o: { readonly token: string; readonly directory: string; readonly clock?: Clock }) {
    this.#token = o.token
    this.#directory = o.directory
    this.#clock = o.clock ?? systemClock
  }

  readonly handler: RequestHandler = (request, _response, next) => {
    this.admit(request, request.path, request.socket)
    next()
  }

  /** Lets one request in, whose connection is cut when its token ends. Throws `CONTROL_TOKEN`, `ROLE_REFUSED`, `NOT_FOUND`. */
  admit(request: IncomingMessage, path: string, socket: Duplex): void {
    const matched = rowOf(request.method ?? '', path)
    if (matched?.row.may === 'anyone') return
    const given = /^Bearer\s+(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    const caller = given === undefined ? null : this.#callerOf(given, socket)
    if (caller === null) throw new PaddockError('CONTROL_TOKEN', 'the token is missing, wrong, over or revoked')
    if (matched === null) {
      throw new PaddockError('NOT_FOUND', `no control route ${request.method ?? ''} ${path}`, {
        fix: 'See docs/reference/routes.md for the control routes.',
      })
    }
    const { row } = matched
    if (row.may !== 'anyone' && !row.may.includes(caller.role)) {
      throw new PaddockError(
        'ROLE_REFUSED',
        `the token ${caller.name} has the role ${caller.role}, and ${row.route} is for ${row.may.join(', ')}`,
        { data: { name: caller.name, role: caller.role, may: row.may } },
      )
    }
    admitted.set(request, { ...matched, caller })
  }

  close(): void {
    this.#open.clear()
    this.#rest()
  }

  #callerOf(given: string, socket: Duplex): Caller | null {
    if (sameToken(given, this.#token)) {
      this.#open.delete(socket)
      return { name: machineToken, role: 'admin' }
    }
    const record = validToken(this.#directory, given, this.#clock.now())
    if (record === null) return null
    this.#watch(socket, record)
    return { name: record.name, role: record.role }
  }

  /** A connection that is kept alive counts as its last request's. */
  #watch(socket: Duplex, record: TokenRecord): void {
    if (socket.destroyed) return
    if (!this.#open.has(socket)) {
      socket.once('close', () => {
        this.#open.delete(socket)
        if (this.#open.size === 0) this.#rest()
      })
    }
    this.#open.set(socket, record)
    this.#looking ??= setInterval(() => this.#look(), lookMs).unref()
  }

  #look(): void {
    const now = this.#clock.now()
    const valid = new Map<string, boolean>()
    for (const [socket, record] of this.#open) {
      const known = valid.get(record.name) ?? this.#stillValid(record, now)
      valid.set(record.name, known)
      if (!known) socket.destroy()
    }
  }

  /** A record that cannot be read any more opens nothing. */
  #stillValid(record: TokenRecord, now: number): boolean {
    try {
      return stillValid(this.#directory, record, now)
    } catch {
      return false
    }
  }

  #rest(): void {
    if (this.#looking !== null) clearInterval(this.#looking)
    this.#looking = null
  }
}
