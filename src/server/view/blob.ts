import type { RequestHandler } from 'express'
import { z } from 'zod'
import type { StoreReader } from '../../trajectory/index.ts'
import { parse } from '../parse.ts'

const blobPath = z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/, 'not a SHA-256') })

/** What a browser may show, by how the bytes begin: nothing that can run code (no SVG), and never what a recording says of itself. */
const shownTypes: readonly { readonly type: string; readonly is: (head: string) => boolean }[] = [
  { type: 'image/png', is: (head) => head.startsWith('\u0089PNG\r\n\u001a\n') },
  { type: 'image/jpeg', is: (head) => head.startsWith('\u00ff\u00d8\u00ff') },
  { type: 'image/gif', is: (head) => /^GIF8[79]a/.test(head) },
  { type: 'image/webp', is: (head) => /^RIFF[\s\S]{4}WEBP/.test(head) },
]

/** A stored blob by its digest. What is no picture is a file to save. */
export function blobRoute({ blobs }: StoreReader): RequestHandler {
  return async (request, response) => {
    const { sha256 } = parse(blobPath, request.params, 'path')
    const content = Buffer.from(await blobs.get(sha256))
    const head = content.subarray(0, 16).toString('latin1')
    const shown = shownTypes.find(({ is }) => is(head))
    response.set({
      'content-security-policy': "default-src 'none'; sandbox",
      'content-disposition': shown === undefined ? `attachment; filename="${sha256}"` : 'inline',
      // Content never changes under its digest.
      'cache-control': 'private, max-age=31536000, immutable',
    })
    response.type(shown?.type ?? 'application/octet-stream').send(content)
  }
}
