import type { IncomingHttpHeaders } from 'node:http'
import { type Id, PaddockError } from '../../core/index.ts'
import type { OpenedSession, OpenSession } from '../contract.ts'
import { readLineage } from '../dialects/chat/lineage.ts'
import type { LiveSession } from './live-session.ts'

/**
 * Open mode: people who just want to look point a harness at `/v1` with any key. Requests that name the same
 * harness-native session share a session of ours; those that name none share one.
 */
export class OpenDoor {
  private readonly opened = new Map<string, Promise<OpenedSession>>()
  private readonly open: (open: OpenSession) => Promise<OpenedSession>
  private readonly find: (id: Id) => LiveSession | null

  constructor(open: (open: OpenSession) => Promise<OpenedSession>, find: (id: Id) => LiveSession | null) {
    this.open = open
    this.find = find
  }

  async session(headers: IncomingHttpHeaders): Promise<LiveSession> {
    const native = readLineage(headers, {}, null).nativeSession ?? ''
    const known = this.opened.get(native)
    if (known !== undefined) {
      const session = this.find((await known).session.id)
      if (session?.open === true) return session
    }
    const opening = this.open({ labels: { opened: 'open-mode', ...(native === '' ? {} : { native }) } })
    this.opened.set(native, opening)
    opening.catch(() => this.opened.delete(native))
    const session = this.find((await opening).session.id)
    if (session === null) throw new PaddockError('SESSION_CLOSED', 'The session was closed while it was opened.')
    return session
  }
}
