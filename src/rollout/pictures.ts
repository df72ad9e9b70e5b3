import type { Digest, EventBody } from '../core/index.ts'
import type { ToolOutcome } from '../envs/index.ts'

/** Stores bytes by their digest: the run's blobs. */
export type KeepBytes = (bytes: Uint8Array) => Promise<Digest>

type Told = Pick<Extract<EventBody, { kind: 'tool_result' }>, 'images' | 'facts'>

/** What an event tells of an outcome beside its text. The pictures are stored first, each once, so that it names what is there. */
export async function toldOf({ pictures = [], facts }: ToolOutcome, keep: KeepBytes): Promise<Told> {
  const images = await Promise.all(
    pictures.map(async ({ data, mediaType, width, height }) => ({
      sha256: await keep(data),
      mediaType,
      width,
      height,
    })),
  )
  return { ...(images.length === 0 ? {} : { images }), ...(facts === undefined ? {} : { facts }) }
}
