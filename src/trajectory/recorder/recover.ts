import type { Database } from 'better-sqlite3'
import { readId, type StoredId } from '../sqlite/index.ts'
import { commitEntry } from './entries.ts'
import type { LogWriter } from './log-writer.ts'
import { entryOfLog } from './read-entry.ts'

/**
 * Ends the calls that were in flight when the last owner died: each gets the outcome `interrupted`.
 * Returns how many.
 */
export function recover(db: Database, writer: LogWriter, now: number): number {
  const dangling = db
    .prepare<[], { id: StoredId }>(
      `SELECT id FROM calls WHERE NOT EXISTS (SELECT 1 FROM call_ends WHERE call = calls.n)
         AND NOT EXISTS (SELECT 1 FROM outcomes WHERE call = calls.n) ORDER BY n`,
    )
    .all()
  db.transaction(() => {
    for (const row of dangling) {
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
  return dangling.length
}
