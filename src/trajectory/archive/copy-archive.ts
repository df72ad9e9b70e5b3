import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { DirectoryBlobs } from '../blobs/index.ts'
import { type ArchivedHere, archivedIn, openArchived } from '../recorder/index.ts'
import { openArchiveReader } from './open-archive.ts'

/**
 * Copies the objects that a log names from the archive of one data directory into the folder of another, each read as a log on its
 * way. `missed`: one that cannot be read; it may throw. Returns their bytes.
 */
export async function copyArchive(
  log: Database,
  o: {
    readonly from: string
    readonly to: string
    readonly missed: (session: ArchivedHere, error: unknown) => void
  },
): Promise<number> {
  const source = openArchiveReader(o.from)
  const target = new DirectoryBlobs(join(o.to, 'archive'))
  let sizeBytes = 0
  for (const session of archivedIn(log)) {
    try {
      const bytes = await source.get(session)
      openArchived(bytes, session).close()
      await target.put(bytes)
      sizeBytes += bytes.byteLength
    } catch (error) {
      o.missed(session, error)
    }
  }
  return sizeBytes
}
