import type { Event, Id } from '../../core/index.ts'
import type { RecorderReader, SessionLog, SessionReadOptions } from '../contract/index.ts'
import type { ArchivedSession } from '../recorder/index.ts'
import type { ArchiveReader } from './archive-reader.ts'

/** Reads of a log that may say of a session where its records are. */
export interface LogReads extends Omit<RecorderReader, 'session'> {
  find(id: Id, options?: SessionReadOptions): Promise<SessionLog | ArchivedSession>
  /** Reads an archived session of the bytes of its object. */
  unpack(bytes: Uint8Array, archived: ArchivedSession, options?: SessionReadOptions): Promise<SessionLog>
  /** All events of its object: those of the session and of its rollout when it was archived. */
  unpackEvents(bytes: Uint8Array, archived: ArchivedSession): Promise<readonly Event[]>
}

/** Reads of a log and its archive as one. A session is read whole either here or there, whatever its owner does meanwhile. */
export function withArchive(
  log: LogReads,
  archive: ArchiveReader,
): RecorderReader & Pick<LogReads, 'unpack' | 'unpackEvents'> {
  return {
    ...log,
    session: async (id, options) => {
      const found = await log.find(id, options)
      return 'object' in found ? log.unpack(await archive.get(found), found, options) : found
    },
  }
}
