import { type Digest, type Id, isPaddockError, PaddockError } from '../../core/index.ts'
import type { Recorder, SessionLog, SessionRecord } from '../../trajectory/index.ts'
import { keyDigest } from '../session/keys.ts'
import type { LiveSession } from '../session/live-session.ts'

/** As many as the book remembers of closed ones. */
const mostSessions = 10_000

/** What {@link EarlierSessions} works with. */
export interface EarlierParts {
  readonly recorder: Pick<Recorder, 'sessionKeys' | 'session' | 'closeSession'>
  /** Says of an open session whether it may be gone on with. */
  readonly revives: (session: SessionRecord) => boolean | Promise<boolean>
  /** Makes it live and puts it into the book, as closed where it is. */
  readonly admit: (log: SessionLog, open: boolean) => Promise<LiveSession>
}

/**
 * The sessions that earlier processes left in the log, found by the key that a request carries. Each is read when it is
 * first asked for, so a proxy starts as quickly over a large store as over an empty one.
 */
export class EarlierSessions {
  private readonly parts: EarlierParts
  private known: Promise<Map<Digest, Id>> | null = null
  private readonly admitting = new Map<Id, Promise<void>>()

  constructor(parts: EarlierParts) {
    this.parts = parts
  }

  /** Resolves when the session of this key is in the book, true, or when there is none, false. Throws `STORE_*`. */
  async recall(key: string): Promise<boolean> {
    this.known ??= this.learn()
    const id = (await this.known).get(keyDigest(key))
    if (id === undefined) return false
    let admitting = this.admitting.get(id)
    if (admitting === undefined) {
      admitting = this.admit(id)
      this.admitting.set(id, admitting)
      admitting.catch(() => this.admitting.delete(id))
    }
    await admitting
    return true
  }

  /** Closes a session that nobody has gone on with. Throws `SESSION_UNKNOWN`, `STORE_*`. */
  async close(id: Id, at: number): Promise<void> {
    try {
      await this.parts.recorder.closeSession(id, at)
    } catch (error) {
      if (!isPaddockError(error) || error.code !== 'NOT_FOUND') throw error
      throw new PaddockError('SESSION_UNKNOWN', `There is no session ${id.slice(0, 64)}.`)
    }
  }

  private async learn(): Promise<Map<Digest, Id>> {
    try {
      const sessions = await this.parts.recorder.sessionKeys(mostSessions)
      return new Map(sessions.map(({ id, keyDigest: digest }) => [digest, id]))
    } catch (error) {
      this.known = null
      throw error
    }
  }

  private async admit(id: Id): Promise<void> {
    const { recorder, revives, admit } = this.parts
    const log = await recorder.session(id)
    await admit(log, log.closedAt === null && (await revives(log.session)))
  }
}
