import type { Database } from 'better-sqlite3'
import { isPaddockError } from '../../core/index.ts'
import { readId, type StoredId } from '../sqlite/index.ts'
import { commitEntry } from './entries.ts'
import type { LogWriter } from './log-writer.ts'
import { entryOfLog } from './read-entry.ts'

/**
 * Ends the calls that were in flight when the last owner died: each gets the outcome `interrupted`. A session
 * that has lost records stays as it is. Returns how many were ended.
 */
export function recover(db: Database, writer: LogWriter, now: number): number {
  const dangling = db
    .prepare<[], { id: StoredId; session: number }>(
      `SELECT id, session FROM calls WHERE NOT EXISTS (SELECT 1 FROM call_ends WHERE call = calls.n) ORDER BY n`,
    )
    .all()
  const whole = dangling.filter(({ session }) => isWhole(writer, session))
  db.transaction(() => {
    for (const row of whole) {
      const { head, parts } = commitEntry({
        callId: readId(row.id),
        endedAt: now,
        firstByteAt: null,
        outcome: { kind: 'interrupted' },
        choices: [],
        segments: [],
        spans: [],
        promptLeaf: null,
        forks: [],
        claimedPromptTokens: null,
        findings: [],
        status: null,
        reply: new Uint8Array(0),
        replyMarks: [],
        weightVersionBefore: null,
        weightVersionAfter: null,
      })
      writer.write(entryOfLog({ head, parts: parts.map((part) => Buffer.from(part)) }))
    }
    writer.settle()
  }).immediate()
  return whole.length
}

/** What is missing may be the very end of the call: nothing is put in its place. */
function isWhole(writer: LogWriter, session: number): boolean {
  try {
    writer.chains.end(session)
    return true
  } catch (error) {
    if (isPaddockError(error) && error.code === 'STORE_CORRUPT') return false
    throw error
  }
}
