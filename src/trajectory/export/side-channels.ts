import type { Blobs } from '../contract/index.ts'
import type { ExportRollout } from '../rows-contract.ts'
import { entropiesOf, rowEntropies } from '../rows/index.ts'
import { float32Json, type RawJson } from './json-line.ts'
import type { MediaSink } from './media.ts'

/**
 * A rollout with its side channels as files of the export, each named by its SHA-256, and its entropies as numbers; without them where
 * nobody asked. Throws `NOT_FOUND`, `STORE_CORRUPT`.
 */
export async function withSideChannelFiles(
  rollout: ExportRollout,
  blobs: Pick<Blobs, 'get'> | null,
  sink: MediaSink,
): Promise<ExportRollout> {
  const { sideChannels = [], ...rest } = rollout
  if (blobs === null || sideChannels.length === 0) return rest
  const entropies = new Map<string, Float32Array>()
  for (const { path, sha256, what, callId, choice } of sideChannels) {
    const bytes = await blobs.get(sha256)
    if (what === 'entropies') entropies.set(`${callId}/${choice}`, entropiesOf(bytes))
    else await sink(path, bytes, sha256)
  }
  return { ...rest, sideChannels: sideChannels.filter(({ what }) => what !== 'entropies'), entropies }
}

/** Entropies of a row's sampled tokens, shape [T], null elsewhere and where they are not known; undefined where none is. */
export function entropyJson({ rows, entropies }: ExportRollout, row: number): RawJson | undefined {
  const found = rows[row] === undefined ? undefined : rowEntropies(rows[row], entropies ?? new Map())
  return found === undefined ? undefined : float32Json(found)
}

/** The side channels of a row's calls as exporters write them; undefined where there are none. */
export function sideChannelJson(exported: ExportRollout, row: number): readonly object[] | undefined {
  const choices = new Set(exported.rows[row]?.segments.map(({ callId, choice }) => `${callId}/${choice}`))
  const found = (exported.sideChannels ?? []).filter(({ callId, choice }) => choices.has(`${callId}/${choice}`))
  if (found.length === 0) return undefined
  return found.map(({ callId, choice, what, encoding, path, sha256, sizeBytes }) => ({
    call_id: callId,
    choice,
    what,
    encoding,
    path,
    sha256,
    size_bytes: sizeBytes,
  }))
}
