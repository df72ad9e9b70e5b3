import type { EventBody } from '../core/index.ts'
import type { Blobs } from '../trajectory/index.ts'
import type { RunningAgent } from './agent.ts'

/** Stores what the harness printed as blobs, and tells their names in an event `harness_output`. */
export async function keepOutput(
  blobs: Blobs,
  output: RunningAgent['output'],
  emit: (event: EventBody) => void,
): Promise<void> {
  const streams = await Promise.all(
    (['stdout', 'stderr'] as const).map(async (name) => {
      const bytes = output[name].bytes()
      if (bytes.length === 0) return []
      const sha256 = await blobs.put(bytes)
      return [{ stream: name, sha256, sizeBytes: bytes.length, droppedBytes: output[name].droppedBytes }]
    }),
  )
  if (streams.flat().length > 0) emit({ kind: 'custom', name: 'harness_output', data: { streams: streams.flat() } })
}
