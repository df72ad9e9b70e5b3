/** Reads of archived sessions: which ones a log names, and what their objects hold. */
import type { Database } from 'better-sqlite3'
import type { Event } from '../../core/index.ts'
import type { SessionLog, SessionReadOptions } from '../contract/index.ts'
import { type ArchivedSession, openArchived, tellLate } from './archived.ts'
import { type ArchivedHere, LogReader } from './log-reader.ts'

/** All archived sessions of a log, a page at a time. Throws `STORE_CORRUPT`. */
export function* archivedIn(db: Database): Iterable<ArchivedHere> {
  const reader = new LogReader(db)
  for (let after = 0; ;) {
    const some = reader.archivedSessions(after, pageOfSessions)
    yield* some
    const last = some.at(-1)
    if (last === undefined) return
    after = last.n
  }
}

const pageOfSessions = 500

/** An archived session, of the bytes of its object. Throws `STORE_CORRUPT`. */
export function readArchived(
  bytes: Uint8Array,
  archived: ArchivedSession,
  options: SessionReadOptions = {},
): SessionLog {
  const db = openArchived(bytes, archived)
  try {
    tellLate(db, archived)
    return {
      ...new LogReader(db).session(archived.id, options),
      ...(archived.events === null ? {} : { events: archived.events }),
    }
  } finally {
    db.close()
  }
}

/** The events of an object: of its session, and of the rollout when it was archived. Throws `STORE_CORRUPT`. */
export function archivedEvents(bytes: Uint8Array, archived: ArchivedSession): readonly Event[] {
  const db = openArchived(bytes, archived)
  try {
    return new LogReader(db).allEvents()
  } finally {
    db.close()
  }
}
