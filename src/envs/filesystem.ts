import { z } from 'zod'
import { PaddockError } from '../core/index.ts'
import type { Box, BoxLayer } from '../sandbox/index.ts'
import type { ArtifactItem } from './contract.ts'

/** Where an agent's files stand among artifacts: no file of its box, and never restored as one. */
const place = '/.paddock/filesystem'
const deletedShape = z.array(z.string())

/**
 * All files of a frozen box as one artifact, so that what is verified on them can be verified again. None where that is
 * more than artifacts may be (64 MiB, 10,000 entries).
 */
export async function collectFilesystem(box: Box): Promise<readonly ArtifactItem[]> {
  const layer = await box.takeLayer()
  if (layer === null) return []
  const deleted = Buffer.from(JSON.stringify(layer.deleted))
  const entries = [
    { type: 'file' as const, path: 'deleted.json', mode: 0o600, data: deleted },
    { type: 'file' as const, path: 'layer.tar', mode: 0o600, data: layer.tar },
  ]
  const totalBytes = deleted.length + layer.tar.length
  return [{ path: place, content: { found: true, entries, refused: [], cutShort: false, totalBytes } }]
}

/** The artifacts without {@link collectFilesystem}'s, and what that holds. Throws `STORE_CORRUPT`. */
export function filesystemAmong(items: readonly ArtifactItem[]): {
  readonly layer: BoxLayer | null
  readonly rest: readonly ArtifactItem[]
} {
  const rest = items.filter(({ path }) => path !== place)
  const found = items.find(({ path }) => path === place)
  if (found === undefined) return { layer: null, rest }
  const data = new Map(found.content.entries.map((entry) => [entry.path, entry.type === 'file' ? entry.data : null]))
  const [tar, deleted] = [data.get('layer.tar'), data.get('deleted.json')]
  try {
    if (!tar || !deleted) throw new Error('a part is missing')
    return { layer: { tar, deleted: deletedShape.parse(JSON.parse(new TextDecoder().decode(deleted))) }, rest }
  } catch (cause) {
    throw new PaddockError('STORE_CORRUPT', "The record of an agent's files cannot be read", { cause })
  }
}
