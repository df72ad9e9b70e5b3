/** Entries of the journal as the log reads them. */
import type { ReadEntry } from '../journal/index.ts'
import { readDigest, readId, uuidBytes } from '../sqlite/index.ts'
import type { ReadLogEntry } from './entries.ts'
import { readHead } from './heads.ts'

/** What an entry says. Throws `STORE_CORRUPT`. */
export function entryOfLog({ head, parts }: ReadEntry): ReadLogEntry {
  if (head instanceof Buffer) return { head: readHead(head), parts }
  // The journal of a log is written by its recorder and by nothing else.
  return { head: head as ReadLogEntry['head'], parts }
}

/** The head of an entry as JSON, for people. */
export function headText({ head }: ReadEntry): string {
  if (!(head instanceof Buffer)) return JSON.stringify(head)
  try {
    return JSON.stringify(
      Object.fromEntries(Object.entries(readHead(head)).map(([name, value]) => [name, told(value)])),
    )
  } catch {
    return JSON.stringify(head.toString('hex'))
  }
}

function told(value: unknown): unknown {
  if (!(value instanceof Uint8Array)) return value
  return value.byteLength === uuidBytes ? readId(value) : readDigest(value)
}
