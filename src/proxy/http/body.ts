import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { PaddockError } from '../../core/index.ts'

type Decoder = (bytes: Buffer, bounds: { readonly maxOutputLength: number }) => Promise<Buffer>

const decoders: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ['gzip', promisify(zlib.gunzip)],
  ['x-gzip', promisify(zlib.gunzip)],
  ['deflate', promisify(zlib.inflate)],
  ['br', promisify(zlib.brotliDecompress)],
  ['zstd', promisify(zlib.zstdDecompress)],
])

/**
 * Reads a request body, counting while it comes: the limit also holds for bodies without `content-length`, and for the
 * decoded size of compressed ones. Throws `BODY_TOO_LARGE`, `BODY_ENCODING_UNKNOWN`, and
 * `BODY_INVALID_JSON` when the client goes away before the end.
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const raw = readRaw(request, maxBytes)
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (encoding === 'identity' || encoding === '') return raw
  return raw.then((bytes) => decode(bytes, encoding, maxBytes))
}

/** The bytes as they were sent. Nearly every body comes in one piece. */
function readRaw(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const declared = request.headers['content-length']
    if (declared !== undefined && Number(declared) > maxBytes) {
      reject(tooLarge(maxBytes))
      return
    }
    let first: Buffer | null = null
    let all: Buffer[] | null = null
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) {
        request.removeAllListeners('data')
        request.pause()
        reject(tooLarge(maxBytes))
        return
      }
      if (first === null) first = chunk
      else if (all === null) all = [first, chunk]
      else all.push(chunk)
    })
    request.on('end', () => resolve(all === null ? (first ?? noBytes) : Buffer.concat(all)))
    // Without a listener no error is emitted: who went away has closed.
    request.on('close', () => {
      if (!request.complete) reject(new PaddockError('BODY_INVALID_JSON', 'The request ended before its body.'))
    })
  })
}

const noBytes = Buffer.alloc(0)

async function decode(raw: Buffer, encoding: string, maxBytes: number): Promise<Buffer> {
  const decoder = decoders.get(encoding)
  if (decoder === undefined) {
    throw new PaddockError('BODY_ENCODING_UNKNOWN', `The content-encoding ${encoding.slice(0, 80)} is not known.`, {
      data: { field: 'content-encoding' },
      fix: `Send the body as it is, or as ${[...decoders.keys()].join(', ')}.`,
    })
  }
  try {
    return await decoder(raw, { maxOutputLength: maxBytes })
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes)
    throw new PaddockError('BODY_INVALID_JSON', `The body is not valid ${encoding}.`, { cause })
  }
}

function tooLarge(maxBytes: number): PaddockError {
  return new PaddockError('BODY_TOO_LARGE', `The request body is larger than ${maxBytes} bytes.`, {
    data: { maxBytes },
  })
}
