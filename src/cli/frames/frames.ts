import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Event, Id } from '../../core/index.ts'
import { tokenCounts } from '../../read/index.ts'
import type { SessionLog, StoreReader } from '../../trajectory/index.ts'

/** A picture that a tool gave the agent, with what led to it. */
export interface Frame {
  readonly file: string
  readonly tool: string
  readonly status: string
  /** The model call that asked for the tool; null where that is not known. */
  readonly callId: Id | null
  /** Tokens that the model sampled in that call; null where its ids are not known. */
  readonly sampled: number | null
  readonly text: string
}

type Picture = NonNullable<Extract<Event, { kind: 'tool_result' }>['images']>[number]

/**
 * Writes the pictures that a rollout's tools gave into a directory, numbered in their order, and `index.html`, which shows
 * them as a strip with the calls that they belong to. Rejects with what the file system says, and `NOT_FOUND` for a blob
 * that is not there any more.
 */
export async function writeFrames(
  { blobs }: Pick<StoreReader, 'blobs'>,
  o: { readonly events: readonly Event[]; readonly logs: readonly SessionLog[]; readonly directory: string },
): Promise<readonly Frame[]> {
  const sampled = new Map(o.logs.flatMap((log) => [...tokenCounts(log)]).map(([id, counts]) => [id, counts.sampled]))
  const frames: Frame[] = []
  await mkdir(o.directory, { recursive: true })
  for (const event of o.events) {
    if (event.kind !== 'tool_result') continue
    for (const image of event.images ?? []) {
      const file = `${String(frames.length + 1).padStart(4, '0')}-${event.tool}.${extensionOf(image)}`
      await writeFile(join(o.directory, file), await blobs.get(image.sha256))
      const { tool, status, callId, result } = event
      const tokens = callId === null ? null : (sampled.get(callId) ?? null)
      frames.push({ file, tool, status, callId, sampled: tokens, text: result })
    }
  }
  await writeFile(join(o.directory, 'index.html'), stripOf(frames))
  return frames
}

function extensionOf({ mediaType }: Picture): string {
  return mediaType === 'image/jpeg' ? 'jpg' : 'png'
}

function stripOf(frames: readonly Frame[]): string {
  const figures = frames.map(({ file, tool, status, callId, sampled, text }, at) => {
    const call = callId === null ? '' : `, call ${callId.slice(-8)}${sampled === null ? '' : `, ${sampled} tokens`}`
    const caption = escaped(`${at + 1}. ${tool} ${status}${call}`)
    return `<figure><img src="${escaped(file)}" loading="lazy" alt="${caption}"><figcaption>${caption}<pre>${escaped(text.slice(0, 600))}</pre></figcaption></figure>`
  })
  return `<!doctype html>
<meta charset="utf-8"><title>Frames</title>
<style>body{display:flex;flex-wrap:wrap;gap:14px;font:13px sans-serif}figure{margin:0;width:480px}img{width:100%;border:1px solid #999}pre{white-space:pre-wrap}</style>
${figures.join('\n')}
`
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
