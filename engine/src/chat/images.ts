import { createHash } from 'node:crypto'
import { EngineError, validationError } from '../errors.ts'
import { readList, readObject, readText } from '../json/read.ts'
import type { Json, JsonObject } from '../json/lossless.ts'

/** An image of a request as the model gets it. */
export interface RequestImage {
  /** Of the decoded bytes. */
  readonly sha256: string
  /** How many placeholder tokens stand for it in the prompt. */
  readonly tokens: number
}

/** Side of the square of pixels that one token stands for (Qwen2.5-VL: 14-pixel patches, merged two by two). */
const pixelsPerToken = 28
/** As a server started with `--mm-processor-kwargs '{"max_pixels": ...}'`: a big image is scaled down to this. */
const mostTokens = 256

/** The images of a request's messages, in the order in which they stand in the prompt. */
export function imagesOf(body: JsonObject): RequestImage[] {
  return (readList(body, 'messages') ?? []).flatMap((message, index) => {
    const content = message instanceof Map ? message.get('content') : undefined
    return (Array.isArray(content) ? content : []).flatMap((part) => (isImage(part) ? [readImage(part, index)] : []))
  })
}

export function isImage(part: Json): part is JsonObject {
  return part instanceof Map && readText(part, 'type') === 'image_url'
}

/**
 * The text that a template of Qwen2.5-VL's family has in place of an image, after vLLM's processor has repeated the
 * placeholder (`vllm/model_executor/models/qwen2_5_vl.py`). Throws a 400 for an image that cannot be read.
 */
export function imageText(part: JsonObject, index: number): string {
  return `<|vision_start|>${'<|image_pad|>'.repeat(readImage(part, index).tokens)}<|vision_end|>`
}

function readImage(part: JsonObject, index: number): RequestImage {
  const image = readObject(part, 'image_url')
  const url = image === undefined ? undefined : readText(image, 'url')
  if (url === undefined) throw validationError('Field required', `messages.${index}.content.image_url.url`)
  const data = /^data:image\/[\w.+-]+;base64,(.*)$/s.exec(url)?.[1]
  if (data === undefined) {
    throw new EngineError(`messages.${index}: this engine fetches no images; send a data URL`, { param: 'messages' })
  }
  const bytes = Buffer.from(data, 'base64')
  return { sha256: createHash('sha256').update(bytes).digest('hex'), tokens: tokensFor(sizeOf(bytes, index)) }
}

function tokensFor({ width, height }: { readonly width: number; readonly height: number }): number {
  const side = (pixels: number) => Math.max(2, Math.round(pixels / pixelsPerToken))
  const whole = side(width) * side(height)
  if (whole <= mostTokens) return whole
  const scale = Math.sqrt(mostTokens / whole)
  return Math.floor(side(width) * scale) * Math.floor(side(height) * scale)
}

/** Width and height in pixels out of a PNG's first chunk or a JPEG's frame header. */
function sizeOf(bytes: Buffer, index: number): { readonly width: number; readonly height: number } {
  if (bytes.length >= 24 && bytes.toString('latin1', 1, 4) === 'PNG') {
    return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
  }
  if (bytes[0] === 0xff && bytes[1] === 0xd8) {
    for (let at = 2; at + 9 <= bytes.length;) {
      const marker = bytes[at + 1] ?? 0
      const frame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
      if (frame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
      at += 2 + bytes.readUInt16BE(at + 2)
    }
  }
  throw new EngineError(`messages.${index}: cannot identify image file`, { param: 'messages' })
}
