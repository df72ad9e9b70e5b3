/**
 * Where blobs or finished sessions of a data directory are, if not in it: a file in it (`blobs.json`, `archive.json`), which every
 * reader goes by. No key is in it.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { objectStoreKeys, type ObjectStoreKeys } from '../../config/index.ts'
import { type Id, PaddockError } from '../../core/index.ts'
import type { Objects } from './contract.ts'
import { DirectoryObjects } from './directory-objects.ts'
import { kinds, type ObjectsKind } from './kinds.ts'
import { type ObjectStore, S3Objects } from './s3-objects.ts'

/** What a configuration says of it. `directory`: one that machines share. */
export type ObjectsStore = { readonly s3: ObjectStore } | { readonly directory: string }

/** As configurations have it; null: nothing is said. */
export function objectsStoreOf(o: {
  readonly s3: ObjectStore | null
  readonly directory: string | null
}): ObjectsStore | null {
  if (o.s3 !== null) return { s3: o.s3 }
  return o.directory === null ? null : { directory: o.directory }
}

/** With the folder of one data directory: no other one writes there. */
export type ObjectsPlace = ObjectsStore & { readonly folder: string }

const folder = z.string().min(1)
const bucket = z.strictObject({
  endpoint: z.url().nullable(),
  bucket: z.string(),
  prefix: z.string(),
  region: z.string(),
  pathStyle: z.boolean(),
})
const written = z.union([
  z.strictObject({ s3: bucket, folder }),
  z.strictObject({ directory: z.string(), folder }),
  // As blobs were written before they could be in a directory.
  bucket.extend({ folder }).transform(({ folder: its, ...s3 }) => ({ s3, folder: its })),
])

/** Null: they are, and always were, in the data directory. Throws `STORE_CORRUPT`. */
export function placeOf(directory: string, kind: ObjectsKind): ObjectsPlace | null {
  const file = join(directory, kinds[kind].file)
  if (!existsSync(file)) return null
  try {
    return written.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    throw new PaddockError('STORE_CORRUPT', `${file} does not say where ${kinds[kind].are}`, { cause: error })
  }
}

/**
 * Where they go from now on: what is configured, else where they are; `newFolder`: of a place that is begun. Throws `*_OTHER` for another
 * place than they are in, and `*_REFUSED` for a shared directory that is not there.
 */
export function settlePlace(
  directory: string,
  kind: ObjectsKind,
  asked: ObjectsStore | null,
  newFolder: () => Id,
): ObjectsPlace | null {
  const known = placeOf(directory, kind)
  if (asked === null) return known
  const place = {
    ...('s3' in asked ? { s3: asked.s3 } : { directory: resolve(asked.directory) }),
    folder: known?.folder ?? newFolder(),
  }
  if (known !== null && !isSame(known, place)) {
    throw new PaddockError(
      kinds[kind].other,
      `${kinds[kind].are} in ${nameOf(known)} for ${directory}, and ${nameOf(place)} is configured`,
    )
  }
  if (known === null && 'directory' in place) begin(place, kind)
  const file = join(directory, kinds[kind].file)
  writeFileSync(`${file}.tmp`, `${JSON.stringify(place)}\n`, { mode: 0o600 })
  renameSync(`${file}.tmp`, file)
  return place
}

/** A directory is mounted at another path where it has the folder. */
function isSame(known: ObjectsPlace, asked: ObjectsPlace): boolean {
  if ('s3' in known) return 's3' in asked && known.s3.bucket === asked.s3.bucket && known.s3.prefix === asked.s3.prefix
  if (!('directory' in asked)) return false
  return known.directory === asked.directory || existsSync(join(asked.directory, asked.folder))
}

/** Made here alone: where it is not there later on, the directory is not mounted. */
function begin(
  { directory, folder: name }: { readonly directory: string; readonly folder: string },
  kind: ObjectsKind,
): void {
  const path = join(directory, name)
  // Blobs have the folder of their log: a data directory that lost its file finds it again.
  if (existsSync(path)) return
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    throw new PaddockError(kinds[kind].refused, `${directory} takes no ${kinds[kind].called}`, { cause: error })
  }
}

/** For people. */
export function nameOf(store: ObjectsStore): string {
  return 's3' in store ? `s3: ${store.s3.bucket}/${store.s3.prefix}` : store.directory
}

/** The objects of a folder. */
export function objectsOf(
  place: ObjectsPlace,
  kind: ObjectsKind,
  keys: ObjectStoreKeys | null = objectStoreKeys(),
): Objects {
  if ('directory' in place) return new DirectoryObjects({ ...place, of: kind })
  return new S3Objects({ place: { ...place.s3, folder: place.folder }, keys, of: kind })
}
