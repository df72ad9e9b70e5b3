import type { IncomingHttpHeaders } from 'node:http'
import { type Id, PaddockError, requireOwnPage } from '../../core/index.ts'
import type { SessionRecord } from '../../trajectory/index.ts'
import type { OpenedSession, OpenSession } from '../contract.ts'
import { readLineage } from '../dialects/chat/lineage.ts'
import type { LiveSession } from './live-session.ts'

/** What an {@link OpenSessions} works with. */
export interface OpenSessionsParts {
  readonly open: (open: OpenSession) => Promise<OpenedSession>
  /** The session that an earlier process left under a harness-native id, brought back; null where there is none. */
  readonly recall: (native: string) => Promise<Id | null>
  /** Null for a closed one. */
  readonly find: (id: Id) => LiveSession | null
}

/**
 * Open mode: people who just want to look point a harness at `/v1` with any key. Requests that name the same
 * harness-native session share a session of ours, also with those of a process that died; those that name none share one.
 */
export class OpenSessions {
  private readonly parts: OpenSessionsParts
  private readonly opened = new Map<string, Promise<Id>>()

  constructor(parts: OpenSessionsParts) {
    this.parts = parts
  }

  /** Throws `ORIGIN_REFUSED` for a web page that is not ours. */
  async session(headers: IncomingHttpHeaders): Promise<LiveSession> {
    requireOwnPage(headers)
    const native = readLineage(headers, {}, null).nativeSession ?? ''
    const opening = this.opened.get(native) ?? this.remember(native, this.recallOrOpen(native))
    const session = this.parts.find(await opening)
    if (session?.open === true) return session
    // Closed meanwhile by somebody who knows its id; whoever sees that first opens the next one.
    const again = this.opened.get(native)
    const next = again === undefined || again === opening ? this.remember(native, this.openFor(native)) : again
    const other = this.parts.find(await next)
    if (other === null) throw new PaddockError('SESSION_CLOSED', 'The session was closed while it was opened.')
    return other
  }

  /** Those that were opened here or brought back. */
  async ids(): Promise<readonly Id[]> {
    const settled = await Promise.allSettled(this.opened.values())
    return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  }

  private remember(native: string, opening: Promise<Id>): Promise<Id> {
    this.opened.set(native, opening)
    opening.catch(() => {
      if (this.opened.get(native) === opening) this.opened.delete(native)
    })
    return opening
  }

  private async recallOrOpen(native: string): Promise<Id> {
    const earlier = await this.parts.recall(native)
    return earlier !== null && this.parts.find(earlier)?.open === true ? earlier : this.openFor(native)
  }

  private async openFor(native: string): Promise<Id> {
    const { session } = await this.parts.open({ labels: labelsOf(native) })
    return session.id
  }
}

const openMode = 'open-mode'

function labelsOf(native: string): SessionRecord['labels'] {
  return { opened: openMode, ...(native === '' ? {} : { native }) }
}

/** The harness-native id for which open mode opened a session of these labels, empty for none; null for other sessions. */
export function nativeOf(labels: SessionRecord['labels']): string | null {
  return labels['opened'] === openMode ? (labels['native'] ?? '') : null
}
