import type { Blobs } from '../contract/index.ts'
import type { ExportRollout } from '../rows-contract.ts'
import type { MediaSink } from './media.ts'

/**
 * A rollout with its side channels as files of the export, each named by its SHA-256; without them where nobody asked.
 * Throws `NOT_FOUND`, `STORE_CORRUPT`.
 */
export async function withSideChannelFiles(
  rollout: ExportRollout,
  blobs: Pick<Blobs, 'get'> | null,
  sink: MediaSink,
): Promise<ExportRollout> {
  const { sideChannels = [], ...rest } = rollout
  if (blobs === null || sideChannels.length === 0) return rest
  for (const { path, sha256 } of sideChannels) await sink(path, await blobs.get(sha256), sha256)
  return rollout
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
