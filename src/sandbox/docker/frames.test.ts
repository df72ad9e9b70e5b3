import fc from 'fast-check'
import { expect, it } from 'vitest'
import { AttachReader, frame, FrameReader } from './frames.ts'

const frames = fc.array(
  fc.record({ type: fc.nat(255), id: fc.nat(2 ** 32 - 1), payload: fc.uint8Array({ maxLength: 300 }) }),
  { maxLength: 12 },
)

it('cuts a stream back into its frames, wherever the transport cut it', () => {
  fc.assert(
    fc.property(frames, fc.array(fc.nat(40), { minLength: 1 }), fc.nat(60), (list, cuts, dockerSize) => {
      const bytes = Buffer.concat(list.map((one) => frame(one.type, one.id, one.payload)))
      const read: { type: number; id: number; payload: Uint8Array }[] = []
      const frames_ = new FrameReader((type, id, payload) => read.push({ type, id, payload: new Uint8Array(payload) }))
      const words: Buffer[] = []
      const reader = new AttachReader(
        (piece) => frames_.push(piece),
        (piece) => words.push(Buffer.from(piece)),
      )
      const wire = Buffer.concat([
        ...pieces(bytes, dockerSize + 1).map((piece) => docker(1, piece)),
        docker(2, Buffer.from('err')),
      ])
      for (const piece of cut(wire, cuts)) reader.push(piece)
      expect(read).toEqual(list)
      expect(Buffer.concat(words).toString()).toBe('err')
    }),
  )
})

function docker(stream: number, body: Buffer): Buffer {
  const head = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0])
  head.writeUInt32BE(body.length, 4)
  return Buffer.concat([head, body])
}

function pieces(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const out: Buffer[] = []
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = 1 + (sizes[i % sizes.length] ?? 0)
    out.push(bytes.subarray(at, at + size))
    at += size
  }
  return out
}
