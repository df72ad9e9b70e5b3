/** Where the archive of a data directory is: `archive.json` in it, which every reader goes by. No key is in it. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { newId, objectStoreKeys, type ObjectStoreKeys, PaddockError } from '../../core/index.ts'
import { type Objects, type ObjectStore, S3Objects } from '../blobs/index.ts'
import { DirectoryObjects } from './directory-objects.ts'

/** What a configuration says of it. */
export type ArchiveStore = { readonly s3: ObjectStore } | { readonly directory: string }

/** As configurations have it; null: nothing is said. */
export function archiveStoreOf(o: {
  readonly s3: ObjectStore | null
  readonly directory: string | null
}): ArchiveStore | null {
  if (o.s3 !== null) return { s3: o.s3 }
  return o.directory === null ? null : { directory: o.directory }
}

/** With the folder of one data directory: no other one writes there, so what it does not name there may be removed. */
export type ArchivePlace = ArchiveStore & { readonly folder: string }

const folder = z.string().min(1)
const written = z.union([
  z.strictObject({
    s3: z.strictObject({
      endpoint: z.url().nullable(),
      bucket: z.string(),
      prefix: z.string(),
      region: z.string(),
      pathStyle: z.boolean(),
    }),
    folder,
  }),
  z.strictObject({ directory: z.string(), folder }),
])

const fileOf = (directory: string): string => join(directory, 'archive.json')

/** Null: nothing was ever archived from there. Throws `STORE_CORRUPT`. */
export function archivePlaceOf(directory: string): ArchivePlace | null {
  const file = fileOf(directory)
  if (!existsSync(file)) return null
  try {
    return written.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    throw new PaddockError('STORE_CORRUPT', `${file} does not say where the archive is`, { cause: error })
  }
}

/**
 * Where the finished sessions of a directory go from now on: what is configured, else where they are. Throws `ARCHIVE_OTHER` for another
 * place than they are in, and `ARCHIVE_REFUSED` for a directory that is not there.
 */
export function settleArchivePlace(directory: string, asked: ArchiveStore | null): ArchivePlace | null {
  const known = archivePlaceOf(directory)
  if (asked === null) return known
  const place = {
    ...('s3' in asked ? { s3: asked.s3 } : { directory: resolve(asked.directory) }),
    folder: known?.folder ?? newId(),
  }
  if (known !== null && !isSame(known, place)) {
    throw new PaddockError(
      'ARCHIVE_OTHER',
      `the finished sessions of ${directory} are in ${nameOf(known)}, and ${nameOf(place)} is configured`,
    )
  }
  if (known === null && 'directory' in place) begin(place)
  const file = fileOf(directory)
  writeFileSync(`${file}.tmp`, `${JSON.stringify(place)}\n`, { mode: 0o600 })
  renameSync(`${file}.tmp`, file)
  return place
}

/** A directory is mounted at another path where it has the folder. */
function isSame(known: ArchivePlace, asked: ArchivePlace): boolean {
  if ('s3' in known) return 's3' in asked && known.s3.bucket === asked.s3.bucket && known.s3.prefix === asked.s3.prefix
  if (!('directory' in asked)) return false
  return known.directory === asked.directory || existsSync(join(asked.directory, asked.folder))
}

/** Made here alone: where it is not there later on, the directory is not mounted. */
function begin({ directory, folder: name }: { readonly directory: string; readonly folder: string }): void {
  try {
    mkdirSync(join(directory, name), { mode: 0o700 })
  } catch (error) {
    throw new PaddockError('ARCHIVE_REFUSED', `${directory} takes no archive`, { cause: error })
  }
}

/** For people. */
export function nameOf(store: ArchiveStore): string {
  return 's3' in store ? `s3: ${store.s3.bucket}/${store.s3.prefix}` : store.directory
}

/** The objects of a folder. */
export function objectsOf(place: ArchivePlace, keys: ObjectStoreKeys | null = objectStoreKeys()): Objects {
  if ('directory' in place) return new DirectoryObjects(place)
  return new S3Objects({ place: { ...place.s3, folder: place.folder }, keys, of: 'archive' })
}
