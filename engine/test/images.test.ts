import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { imagesOf } from '../src/chat/images.ts'
import { parseJson } from '../src/json/lossless.ts'
import { loadProfile } from '../src/profiles.ts'
import { templateMessages } from '../src/chat/messages.ts'
import type { Json, JsonObject } from '../src/json/lossless.ts'

/** The head of a PNG of this size: all that is read of it. */
function png(width: number, height: number): Buffer {
  const head = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
  const size = Buffer.alloc(8)
  size.writeUInt32BE(width, 0)
  size.writeUInt32BE(height, 4)
  return Buffer.concat([head, size])
}

/** A JPEG whose frame header stands behind an application segment. */
function jpeg(width: number, height: number): Buffer {
  const frame = Buffer.from('ffd8ffe000040000ffc0000b0800000000', 'hex')
  frame.writeUInt16BE(height, 13)
  frame.writeUInt16BE(width, 15)
  return frame
}

function asked(...images: readonly Buffer[]): JsonObject {
  const parts = images.map((bytes) => ({
    type: 'image_url',
    image_url: { url: `data:image/png;base64,${bytes.toString('base64')}` },
  }))
  const content = [{ type: 'text', text: 'What is this?' }, ...parts]
  return parseJson(JSON.stringify({ messages: [{ role: 'user', content }] })) as JsonObject
}

it('reads images in order, by digest, as many tokens as their size asks for', () => {
  const [screen, icon] = [png(1280, 800), jpeg(56, 84)]
  const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
  expect(imagesOf(asked(screen, icon))).toEqual([
    { sha256: digest(screen), tokens: expect.any(Number) },
    { sha256: digest(icon), tokens: 6 },
  ])
  const [big] = imagesOf(asked(screen))
  expect(big?.tokens).toBeLessThanOrEqual(256)
  expect(big?.tokens).toBeGreaterThan(200)
})

it('stands for each image with its placeholders in the prompt, each one token', async () => {
  const { vocabulary } = loadProfile('scripted-hermes')
  const [message] = templateMessages(asked(jpeg(56, 84)).get('messages') as Json[], true)
  const ids = await vocabulary.encode(message?.content ?? '')
  const pad = vocabulary.idOf('<|image_pad|>')
  expect(ids.filter((id) => id === pad)).toHaveLength(6)
  expect(ids.at(-1)).toBe(vocabulary.idOf('<|vision_end|>'))
})
