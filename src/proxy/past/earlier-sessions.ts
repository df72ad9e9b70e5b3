import { type Digest, type Id, isPaddockError, PaddockError } from '../../core/index.ts'
import type { Recorder, SessionLog, SessionRecord } from '../../trajectory/index.ts'
import { keyDigest } from '../session/keys.ts'
import type { LiveSession } from '../session/live-session.ts'
import { nativeOf } from '../session/open-sessions.ts'

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

/** What requests may name sessions by. */
interface Known {
  readonly byKey: ReadonlyMap<Digest, Id>
  /** Those of open mode that are not closed, by the harness's own session id; the newest of each. */
  readonly byNative: ReadonlyMap<string, Id>
}

/**
 * The sessions that earlier processes left in the log, found by the key that a request carries, or by the harness's own
 * session id in open mode. Each is read when it is first asked for, so a proxy starts as quickly over a large store as
 * over an empty one.
 */
export class EarlierSessions {
  private readonly parts: EarlierParts
  private known: Promise<Known> | null = null
  private readonly admitting = new Map<Id, Promise<void>>()

  constructor(parts: EarlierParts) {
    this.parts = parts
  }

  /** Resolves when the session of this key is in the book, true, or when there is none, false. Throws `STORE_*`. */
  async recall(key: string): Promise<boolean> {
    this.known ??= this.learn()
    const id = (await this.known).byKey.get(keyDigest(key))
    if (id === undefined) return false
    await this.admitOnce(id)
    return true
  }

  /** As {@link recall}, of what open mode opened for the harness's own session id. Null where there is none. */
  async recallOpened(native: string): Promise<Id | null> {
    this.known ??= this.learn()
    const id = (await this.known).byNative.get(native)
    if (id === undefined) return null
    await this.admitOnce(id)
    return id
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

  private async learn(): Promise<Known> {
    try {
      const sessions = await this.parts.recorder.sessionKeys(mostSessions)
      const byNative = new Map<string, Id>()
      for (const { id, labels, closed } of sessions) {
        const native = closed ? null : nativeOf(labels)
        if (native !== null && !byNative.has(native)) byNative.set(native, id)
      }
      return { byKey: new Map(sessions.map(({ id, keyDigest: digest }) => [digest, id])), byNative }
    } catch (error) {
      this.known = null
      throw error
    }
  }

  private admitOnce(id: Id): Promise<void> {
    let admitting = this.admitting.get(id)
    if (admitting === undefined) {
      admitting = this.admit(id)
      this.admitting.set(id, admitting)
      admitting.catch(() => this.admitting.delete(id))
    }
    return admitting
  }

  private async admit(id: Id): Promise<void> {
    const { recorder, revives, admit } = this.parts
    const log = await recorder.session(id)
    await admit(log, log.closedAt === null && (await revives(log.session)))
  }
}
