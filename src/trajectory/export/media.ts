import { createHash } from 'node:crypto'
import type { Digest } from '../../core/index.ts'
import type { ExportRollout, RowMedia } from '../rows-contract.ts'

/** The directory beside the files of an export that holds its media, each file named by its SHA-256. */
export const mediaDirectory = 'media'

/** Takes the bytes of a medium; the same bytes may come again. */
export type MediaSink = (name: string, bytes: Uint8Array, digest: Digest) => Promise<void>

/** A data URL as the value of a member `url` in JSON text: what image parts of chat messages hold. */
const dataUrl = /"url"\s*:\s*"data:([\w.+-]+(?:\\?\/)[\w.+-]+);base64,((?:[A-Za-z0-9+=]|\\?\/)*)"/g

const extensions: Readonly<Record<string, string>> = { 'image/jpeg': 'jpg', 'image/svg+xml': 'svg' }

/**
 * A rollout whose conversations name media by file instead of holding them: `media/<sha256>.<ext>`, relative to the
 * export. Everything else of the messages stays byte for byte. A screenshot that stands in a hundred rows is one file.
 */
export async function withMediaFiles(rollout: ExportRollout, sink: MediaSink): Promise<ExportRollout> {
  const known = new Map<string, RowMedia>()
  const conversations: ExportRollout['conversations'][number][] = []
  for (const conversation of rollout.conversations) {
    const media: RowMedia[] = []
    const messages: string[] = []
    for (const text of conversation.messages) {
      if (!text.includes(';base64,')) {
        messages.push(text)
        continue
      }
      for (const [whole, type = '', data = ''] of text.matchAll(dataUrl)) {
        const medium = known.get(whole) ?? (await written(type, data, sink))
        known.set(whole, medium)
        media.push(medium)
      }
      messages.push(text.replace(dataUrl, (whole) => `"url":${JSON.stringify(known.get(whole)?.path)}`))
    }
    conversations.push({ ...conversation, messages, media })
  }
  return { ...rollout, conversations }
}

async function written(type: string, data: string, sink: MediaSink): Promise<RowMedia> {
  const mime = type.replace('\\', '')
  const bytes = Buffer.from(data.replaceAll('\\', ''), 'base64')
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const extension = extensions[mime] ?? mime.slice(mime.indexOf('/') + 1).replaceAll(/[^a-z0-9]/g, '')
  const path = `${mediaDirectory}/${sha256}.${extension}`
  await sink(path, bytes, sha256)
  return { path, sha256, mime, sizeBytes: bytes.length }
}

/** The media of a row as exporters write them; undefined where there are none. */
export function mediaJson(exported: ExportRollout, row: number): readonly object[] | undefined {
  const media = exported.conversations[row]?.media ?? []
  if (media.length === 0) return undefined
  return media.map(({ path, sha256, mime, sizeBytes }) => ({ path, sha256, mime, size_bytes: sizeBytes }))
}
