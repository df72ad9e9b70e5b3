import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Clock, type Id, newId, type PaddockError } from '../../core/index.ts'
import { DirectoryBlobReader, DirectoryBlobs } from '../blobs/index.ts'
import type { Catalogue } from '../contract/index.ts'
import { nameOf, objectsOf, type ObjectsPlace, type ObjectsStore, placeOf, settlePlace } from '../objects/index.ts'
import { logMigrations } from '../recorder/index.ts'
import { openForReading, schemaVersion } from '../sqlite/index.ts'
import { ArchiveReader } from './archive-reader.ts'
import { Archiver, type ArchiveStep, type ArchivingLog } from './archiver.ts'

/** Where an owner's finished sessions go. */
export interface ArchiveOptions {
  /** Null: where they are already, or nowhere. */
  readonly store: ObjectsStore | null
  /** Between two looks for finished sessions. Milliseconds, default 5000; null: whoever opened it says when. */
  readonly pollMs?: number | null
  /** It went away, for the reason, or came back (null). */
  readonly onChange?: (why: PaddockError | null) => void
  /** Told of each session, step by step. */
  readonly onStep?: (step: ArchiveStep, id: Id) => void
}

/** Folder of a data directory with objects that a backup brought. */
const hereOf = (directory: string): string => join(directory, 'archive')

/** For a reader, at any time; `place`: another one than that of the directory. Throws `STORE_CORRUPT`. */
export function openArchiveReader(
  directory: string,
  place: ObjectsPlace | null = placeOf(directory, 'archive'),
): ArchiveReader {
  return new ArchiveReader(
    new DirectoryBlobReader(hereOf(directory)),
    place === null ? null : objectsOf(place, 'archive'),
  )
}

/**
 * For the owner of a data directory, whose log is `home`: null where nothing is archived. Whether a store answers is seen by the first
 * look. Throws `ARCHIVE_OTHER`, `ARCHIVE_REFUSED`.
 */
export function openArchiver(
  directory: string,
  home: Id,
  parts: { readonly log: ArchivingLog; readonly catalogue: Catalogue; readonly clock: Clock },
  { pollMs = 5000, onChange = () => undefined, onStep = () => undefined }: ArchiveOptions,
): Archiver | null {
  const place = placeOf(directory, 'archive')
  if (place === null) return null
  const archiver = new Archiver({
    ...parts,
    home,
    folder: place.folder,
    objects: objectsOf(place, 'archive'),
    here: new DirectoryBlobs(hereOf(directory)),
    pollMs: pollMs ?? 0,
    onChange,
    onStep,
  })
  if (pollMs !== null) archiver.start()
  return archiver
}

/** Settles where sessions go, before anything reads. A store that refuses is told at the start; one that is away is not waited for. */
export async function settleArchive(directory: string, { store }: Pick<ArchiveOptions, 'store'>): Promise<void> {
  const place = settlePlace(directory, 'archive', store, newId)
  if (place === null) return
  const slow = AbortSignal.timeout(probeMs)
  try {
    await objectsOf(place, 'archive').probe(slow)
  } catch (error) {
    if (!slow.aborted && codeOf(error) === 'ARCHIVE_REFUSED') throw error
  }
}

const probeMs = 5000

/** An archive that answers. */
export interface ArchiveProbed {
  /** For people. */
  readonly name: string
  readonly store: ObjectsStore
  /** Closed sessions whose records are in the log. */
  readonly waiting: number
}

/** Asks the archive of a data directory, or one that is configured; null: neither is. Throws `ARCHIVE_*`. */
export async function probeArchive(directory: string, asked: ObjectsStore | null): Promise<ArchiveProbed | null> {
  const known = placeOf(directory, 'archive')
  const store = known ?? asked
  if (store === null) return null
  // A directory that is configured and not begun has no folder yet.
  await objectsOf(known ?? { ...store, folder: 's3' in store ? 'paddock' : '' }, 'archive').probe()
  return { name: nameOf(store), store, waiting: waitingIn(join(directory, 'log.sqlite')) }
}

function waitingIn(log: string): number {
  if (!existsSync(log)) return 0
  const db = openForReading(log, null)
  try {
    if (schemaVersion(db) < logMigrations.length) return 0
    return Number(
      db
        .prepare('SELECT count(*) FROM session_ends WHERE session NOT IN (SELECT session FROM archived_sessions)')
        .pluck()
        .get(),
    )
  } finally {
    db.close()
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : null
}
