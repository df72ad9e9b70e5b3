import { type Digest, type Id, PaddockError } from '../../core/index.ts'
import type { SessionStats } from '../contract.ts'
import type { LiveSession } from './live-session.ts'

/** How many closed sessions are remembered by name: late requests are told what happened. */
const remembered = 10_000

/**
 * The open sessions, by id and by the digest of their key; and the question who may use which. Of a closed session only
 * its figures stay: its conversation, handles and answers leave the memory.
 */
export class SessionBook {
  private readonly byId = new Map<Id, LiveSession>()
  private readonly byKey = new Map<Digest, LiveSession>()
  private readonly closed = new Map<Id, SessionStats>()
  private readonly closedKeys = new Map<Digest, Id>()

  add(session: LiveSession): void {
    this.byId.set(session.record.id, session)
    this.byKey.set(session.record.keyDigest, session)
  }

  /** A session of this id is here and open. */
  has(id: Id): boolean {
    return this.byId.has(id)
  }

  /** A session of the key with this digest is here, open or closed. */
  knowsKey(digest: Digest): boolean {
    return this.byKey.has(digest) || this.closedKeys.has(digest)
  }

  /** Forgets a closed session but for its figures. */
  retire(session: LiveSession): void {
    const { id, keyDigest: key } = session.record
    this.byId.delete(id)
    this.byKey.delete(key)
    this.closed.set(id, session.stats())
    this.closedKeys.set(key, id)
    keepNewest(this.closed)
    keepNewest(this.closedKeys)
  }

  /** Figures of a session, also of a closed one. Throws `SESSION_UNKNOWN`. */
  stats(id: Id): SessionStats {
    return this.closed.get(id) ?? this.byIdOrThrow(id).stats()
  }

  isClosed(id: Id): boolean {
    return this.closed.has(id)
  }

  get size(): number {
    let open = 0
    for (const session of this.byId.values()) if (session.open) open += 1
    return open
  }

  all(): LiveSession[] {
    return [...this.byId.values()]
  }

  /** Throws `SESSION_UNKNOWN`, `SESSION_CLOSED`. */
  byIdOrThrow(id: Id): LiveSession {
    const session = this.byId.get(id)
    if (session !== undefined) return session
    if (this.closed.has(id)) throw closedError(id)
    throw new PaddockError('SESSION_UNKNOWN', `There is no session ${id.slice(0, 64)}.`)
  }

  /** The rollout of an open session. */
  rolloutOf(id: Id): Id | null {
    return this.byId.get(id)?.record.rolloutId ?? null
  }

  /**
   * The session that the key with this digest opens, null where it opens none. Digests are compared: how long that takes tells
   * nothing of a key.
   */
  byKeyOrNull(digest: Digest): LiveSession | null {
    return this.byKey.get(digest) ?? null
  }

  /**
   * The session of a request on the inference listener. `id` from the URL, null on key-only routes; `key`: the digest of what
   * the request carries.
   * Throws `AUTH_KEY_UNKNOWN`, `SESSION_UNKNOWN`, `AUTH_KEY_MISMATCH`, `SESSION_CLOSED`, in this order of checks, so
   * that nobody without a key learns which sessions exist.
   */
  authorise(id: Id | null, key: Digest | null): LiveSession {
    const keyed = key === null ? null : this.byKeyOrNull(key)
    if (keyed === null) {
      const closed = key === null ? undefined : this.closedKeys.get(key)
      if (closed !== undefined) throw id === null || id === closed ? closedError(closed) : mismatch()
      throw new PaddockError(
        'AUTH_KEY_UNKNOWN',
        key === null ? 'The request carries no key.' : 'The key opens no session.',
      )
    }
    if (id !== null && this.closed.has(id)) throw mismatch()
    return this.usable(id === null ? keyed : this.agree(this.byIdOrThrow(id), keyed))
  }

  /**
   * The session of a request on a box's socket: the socket authorises. A placeholder key is ignored, a key or URL of
   * another session is refused. Throws `AUTH_KEY_MISMATCH`, `SESSION_CLOSED`.
   */
  authoriseSocket(socket: LiveSession, id: Id | null, key: Digest | null): LiveSession {
    if (id !== null && id !== socket.record.id) throw mismatch()
    const keyed = key === null ? null : this.byKeyOrNull(key)
    return this.usable(keyed === null ? socket : this.agree(socket, keyed))
  }

  private agree(named: LiveSession, keyed: LiveSession): LiveSession {
    if (named !== keyed) throw mismatch()
    return named
  }

  private usable(session: LiveSession): LiveSession {
    if (session.open) return session
    throw closedError(session.record.id)
  }
}

function keepNewest(map: Map<string, unknown>): void {
  for (const oldest of map.keys()) {
    if (map.size <= remembered) return
    map.delete(oldest)
  }
}

function closedError(id: Id): PaddockError {
  return new PaddockError('SESSION_CLOSED', `The session ${id} is closed.`)
}

function mismatch(): PaddockError {
  return new PaddockError('AUTH_KEY_MISMATCH', 'The key opens another session than the one in the URL.')
}
