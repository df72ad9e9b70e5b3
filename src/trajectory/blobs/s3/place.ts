/** Where in an object store the blobs of a data directory are: `blobs.json` in it, which every reader goes by. No key is in it. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PaddockError } from '../../../core/index.ts'

/** What a configuration says of it. */
export interface ObjectStore {
  /** Base URL; null: Amazon's, of the region. */
  readonly endpoint: string | null
  readonly bucket: string
  /** What the keys of all objects begin with. */
  readonly prefix: string
  readonly region: string
  /** The bucket is a part of the path, else of the host's name. */
  readonly pathStyle: boolean
}

/** With the folder of one data directory. */
export interface BlobPlace extends ObjectStore {
  readonly folder: string
}

function isPlace(value: unknown): value is BlobPlace {
  if (typeof value !== 'object' || value === null) return false
  const { endpoint, bucket, prefix, region, pathStyle, folder } = value as Readonly<Record<string, unknown>>
  const texts = [bucket, prefix, region, folder].every((text) => typeof text === 'string')
  return (
    texts &&
    typeof pathStyle === 'boolean' &&
    (endpoint === null || (typeof endpoint === 'string' && URL.canParse(endpoint)))
  )
}

function fileOf(directory: string): string {
  return join(directory, 'blobs.json')
}

/** Null: they are in the directory. Throws `STORE_CORRUPT`. */
export function blobPlaceOf(directory: string): BlobPlace | null {
  const file = fileOf(directory)
  if (!existsSync(file)) return null
  const told = new PaddockError('STORE_CORRUPT', `${file} does not say where the blobs are`)
  try {
    const place: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (isPlace(place)) return place
  } catch {
    throw told
  }
  throw told
}

/**
 * Where the blobs of a directory go from now on: what is configured, else where they are. Throws `BLOBS_OTHER` for another bucket or prefix
 * than they are in.
 */
export function settleBlobPlace(directory: string, folder: string, asked: ObjectStore | null): BlobPlace | null {
  const known = blobPlaceOf(directory)
  if (asked === null) return known
  if (known !== null && (known.bucket !== asked.bucket || known.prefix !== asked.prefix)) {
    throw new PaddockError(
      'BLOBS_OTHER',
      `the blobs of ${directory} are in ${known.bucket}/${known.prefix}, and ${asked.bucket}/${asked.prefix} is configured`,
    )
  }
  const place: BlobPlace = {
    endpoint: asked.endpoint,
    bucket: asked.bucket,
    prefix: asked.prefix,
    region: asked.region,
    pathStyle: asked.pathStyle,
    folder: known?.folder ?? folder,
  }
  const file = fileOf(directory)
  writeFileSync(`${file}.tmp`, `${JSON.stringify(place)}\n`, { mode: 0o600 })
  renameSync(`${file}.tmp`, file)
  return place
}
