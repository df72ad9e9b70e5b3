import { type Digest, type Id, PaddockError } from '../../core/index.ts'
import { keyDigest, sameDigest } from './keys.ts'
import type { LiveSession } from './live-session.ts'

/** The open sessions, by id and by the digest of their key; and the question who may use which. */
export class SessionBook {
  private readonly byId = new Map<Id, LiveSession>()
  private readonly byKey = new Map<Digest, LiveSession>()

  add(session: LiveSession): void {
    this.byId.set(session.record.id, session)
    this.byKey.set(session.record.keyDigest, session)
  }

  get size(): number {
    let open = 0
    for (const session of this.byId.values()) if (session.open) open += 1
    return open
  }

  all(): LiveSession[] {
    return [...this.byId.values()]
  }

  /** Throws `SESSION_UNKNOWN`. */
  byIdOrThrow(id: Id): LiveSession {
    const session = this.byId.get(id)
    if (session !== undefined) return session
    throw new PaddockError('SESSION_UNKNOWN', `There is no session ${id.slice(0, 64)}.`)
  }

  /** The session that a key opens, null where it opens none. */
  byKeyOrNull(key: string): LiveSession | null {
    const digest = keyDigest(key)
    const session = this.byKey.get(digest)
    return session !== undefined && sameDigest(session.record.keyDigest, digest) ? session : null
  }

  /**
   * The session of a request on the inference listener. `id` from the URL, null on key-only routes.
   * Throws `AUTH_KEY_UNKNOWN`, `SESSION_UNKNOWN`, `AUTH_KEY_MISMATCH`, `SESSION_CLOSED`, in this order of checks, so
   * that nobody without a key learns which sessions exist.
   */
  authorise(id: Id | null, key: string | null): LiveSession {
    const keyed = key === null ? null : this.byKeyOrNull(key)
    if (keyed === null) {
      throw new PaddockError(
        'AUTH_KEY_UNKNOWN',
        key === null ? 'The request carries no key.' : 'The key opens no session.',
      )
    }
    return this.usable(id === null ? keyed : this.agree(this.byIdOrThrow(id), keyed))
  }

  /**
   * The session of a request on a box's slot: the socket authorises. A placeholder key is ignored, a key or URL of
   * another session is refused. Throws `AUTH_KEY_MISMATCH`, `SESSION_CLOSED`.
   */
  authoriseSlot(slot: LiveSession, id: Id | null, key: string | null): LiveSession {
    if (id !== null && id !== slot.record.id) throw mismatch()
    const keyed = key === null ? null : this.byKeyOrNull(key)
    return this.usable(keyed === null ? slot : this.agree(slot, keyed))
  }

  private agree(named: LiveSession, keyed: LiveSession): LiveSession {
    if (named !== keyed) throw mismatch()
    return named
  }

  private usable(session: LiveSession): LiveSession {
    if (session.open) return session
    throw new PaddockError('SESSION_CLOSED', `The session ${session.record.id} is closed.`)
  }
}

function mismatch(): PaddockError {
  return new PaddockError('AUTH_KEY_MISMATCH', 'The key opens another session than the one in the URL.')
}
