import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib'
import { PaddockError } from '../../core/index.ts'

const decoders = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
}

/**
 * Reads a request body, counting while it comes: the limit also holds for bodies without `content-length`, and for the
 * decoded size of compressed ones. Throws `BODY_TOO_LARGE`, `BODY_INVALID_SHAPE` (unknown encoding), and
 * `BODY_INVALID_JSON` when the client goes away before the end.
 */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const declared = Number(request.headers['content-length'] ?? 0)
  if (declared > maxBytes) throw tooLarge(maxBytes)
  const raw = await new Promise<Buffer>((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) {
        request.removeAllListeners('data')
        request.pause()
        reject(tooLarge(maxBytes))
        return
      }
      chunks.push(chunk)
    })
    request.on('end', () => resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)))
    request.on('close', () => {
      if (!request.complete) reject(new PaddockError('BODY_INVALID_JSON', 'The request ended before its body.'))
    })
    request.on('error', reject)
  })
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (encoding === 'identity' || encoding === '') return raw
  return decode(raw, encoding, maxBytes)
}

async function decode(raw: Buffer, encoding: string, maxBytes: number): Promise<Buffer> {
  const decoder = isKnown(encoding) ? decoders[encoding] : null
  if (decoder === null) {
    throw new PaddockError('BODY_INVALID_SHAPE', `The content-encoding ${encoding} is not known.`, {
      data: { field: 'content-encoding' },
      fix: `Send the body as it is, or as ${Object.keys(decoders).join(', ')}.`,
    })
  }
  try {
    return await decoder(raw, { maxOutputLength: maxBytes })
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes)
    throw new PaddockError('BODY_INVALID_JSON', `The body is not valid ${encoding}.`, { cause })
  }
}

function isKnown(encoding: string): encoding is keyof typeof decoders {
  return encoding in decoders
}

function tooLarge(maxBytes: number): PaddockError {
  return new PaddockError('BODY_TOO_LARGE', `The request body is larger than ${maxBytes} bytes.`, {
    data: { maxBytes },
  })
}
