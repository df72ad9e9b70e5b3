import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { z } from 'zod'
import type { ContinuedAnswer } from './conversation.ts'

/** What a handle says when it comes back. */
export interface EchoedAnswer extends ContinuedAnswer {
  /** Thinking that travels in the handle, for wires on which clients do not give its text back. */
  readonly reasoning: string | null
}

const payload = z.tuple([z.string(), z.number().int().min(0), z.string().nullable()])
const versionByte = 1
const macBytes = 16
/** No thinking is longer; what inflates to more is not ours. */
const maxPayloadBytes = 16 * 1024 * 1024

/**
 * Opaque strings that harnesses give back unread (thinking signatures, encrypted reasoning, thought signatures): each
 * names an answer of this session, under a MAC that no other session can make. Base64, because some SDKs decode it.
 */
export class EchoHandles {
  private readonly secret = randomBytes(32)

  mint(answer: ContinuedAnswer, reasoning: string | null = null): string {
    const packed = deflateRawSync(JSON.stringify([answer.callId, answer.choice, reasoning]))
    return Buffer.concat([Buffer.of(versionByte), this.mac(packed), packed]).toString('base64')
  }

  /** Null for a handle that is not of this session: foreign ones are ignored, never an error. */
  read(handle: unknown): EchoedAnswer | null {
    if (typeof handle !== 'string') return null
    const bytes = Buffer.from(handle, 'base64')
    if (bytes[0] !== versionByte || bytes.length <= macBytes + 1) return null
    const packed = bytes.subarray(macBytes + 1)
    if (!timingSafeEqual(bytes.subarray(1, macBytes + 1), this.mac(packed))) return null
    const text = inflateRawSync(packed, { maxOutputLength: maxPayloadBytes }).toString()
    const [callId, choice, reasoning] = payload.parse(JSON.parse(text))
    return { callId, choice, reasoning }
  }

  private mac(packed: Buffer): Buffer {
    return createHmac('sha256', this.secret).update(packed).digest().subarray(0, macBytes)
  }
}
