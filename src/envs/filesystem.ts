import { z } from 'zod'
import { isPaddockError, PaddockError } from '../core/index.ts'
import type { Box, BoxLayer } from '../sandbox/index.ts'
import type { ArtifactItem, Artifacts } from './contract.ts'

/** Where an agent's files stand among artifacts: no file of its box, and never restored as one. */
const place = '/.paddock/filesystem'
/** Where it stands that there is no filesystem, and why. */
const unfitPlace = '/.paddock/unfit.txt'
const deletedShape = z.array(z.string())

/**
 * All files of a frozen box: a snapshot to verify on, and the same as one artifact, so that it can be verified again; not
 * where that is more than artifacts may be (64 MiB, 10,000 entries). Files that cannot be kept are told in their place,
 * and are the agent's fault. Throws for infra faults only.
 */
export async function collectFilesystem(box: Box): Promise<Artifacts> {
  try {
    const filesystem = await box.snapshot()
    return { items: await keptLayer(box), filesystem }
  } catch (error) {
    if (!isPaddockError(error) || error.code !== 'BOX_FILES_UNFIT') throw error
    const data = Buffer.from(error.message)
    const entries = [{ type: 'file' as const, path: 'unfit.txt', mode: 0o600, data }]
    const content = { found: true, entries, refused: [], cutShort: false, totalBytes: data.length }
    return { items: [{ path: unfitPlace, content }] }
  }
}

/** A layer that the files themselves keep from being taken is one that is not kept. */
async function keptLayer(box: Box): Promise<readonly ArtifactItem[]> {
  const layer = await box.takeLayer().catch((error: unknown) => {
    if (isPaddockError(error) && error.code === 'BOX_FILES_UNFIT') return null
    throw error
  })
  if (layer === null) return []
  const deleted = Buffer.from(JSON.stringify(layer.deleted))
  const entries = [
    { type: 'file' as const, path: 'deleted.json', mode: 0o600, data: deleted },
    { type: 'file' as const, path: 'layer.tar', mode: 0o600, data: layer.tar },
  ]
  const totalBytes = deleted.length + layer.tar.length
  return [{ path: place, content: { found: true, entries, refused: [], cutShort: false, totalBytes } }]
}

/**
 * The artifacts without {@link collectFilesystem}'s, and what that holds: the files, or why they could not be kept
 * (`unfit`). Throws `STORE_CORRUPT`.
 */
export function filesystemAmong(items: readonly ArtifactItem[]): {
  readonly layer: BoxLayer | null
  readonly unfit: string | null
  readonly rest: readonly ArtifactItem[]
} {
  const rest = items.filter(({ path }) => path !== place && path !== unfitPlace)
  const why = items.find(({ path }) => path === unfitPlace)?.content.entries[0]
  const unfit = why?.type === 'file' ? new TextDecoder().decode(why.data) : null
  const found = items.find(({ path }) => path === place)
  if (found === undefined) return { layer: null, unfit, rest }
  const data = new Map(found.content.entries.map((entry) => [entry.path, entry.type === 'file' ? entry.data : null]))
  const [tar, deleted] = [data.get('layer.tar'), data.get('deleted.json')]
  try {
    if (!tar || !deleted) throw new Error('a part is missing')
    return { layer: { tar, deleted: deletedShape.parse(JSON.parse(new TextDecoder().decode(deleted))) }, unfit, rest }
  } catch (cause) {
    throw new PaddockError('STORE_CORRUPT', "The record of an agent's files cannot be read", { cause })
  }
}
