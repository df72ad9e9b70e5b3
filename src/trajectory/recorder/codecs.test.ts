import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ReplyMark } from '../contract/index.ts'
import { packBytes, splitPlanes, unpackBytes, unsplitPlanes } from './codec.ts'
import { type ColumnShape, cutColumns, joinColumns } from './columns.ts'
import { applyDelta, findDelta, middleOf } from './delta.ts'
import { packSegmentList, unpackSegmentList } from './segment-list.ts'
import { markPairs, packMarks, pairsOf, unpackMarks } from './marks.ts'
import { joinReply, splitReply } from './replies.ts'

/** Numbers as byte planes of their own. */
function planes(numbers: Uint8Array): Uint8Array {
  const out = new Uint8Array(numbers.byteLength)
  splitPlanes(numbers, out, 0, numbers.byteLength / 4)
  return out
}

/** Marks as pairs of numbers. */
const asPairs = (marks: readonly ReplyMark[]): readonly number[] => pairsOf(markPairs(marks))

/** Marks at these offsets, as pairs with times. */
const marksAt = (offsets: readonly number[]): readonly number[] =>
  asPairs(offsets.map((offset, place) => ({ offset, atMs: place })))

const bytes = (length: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ maxLength: length })

describe('columns', () => {
  it('come back as they were, short and long, and are never much larger', () => {
    fc.assert(
      fc.property(fc.oneof(bytes(64), bytes(5000)), (value) => {
        const packed = packBytes(value)
        expect(unpackBytes(packed)).toEqual(Uint8Array.from(value))
        expect(packed.byteLength).toBeLessThanOrEqual(value.byteLength + 1)
      }),
    )
  })

  it.each([
    ['an unknown codec', Uint8Array.from([9, 1])],
    ['no codec', new Uint8Array(0)],
    ['a spoiled frame', Uint8Array.from([1, 1, 2, 3])],
  ])('are refused with %s', (_what, packed) => {
    expect(() => unpackBytes(packed)).toThrow(expect.objectContaining({ code: 'STORE_CORRUPT' }) as Error)
  })
})

describe('the columns of a call', () => {
  const shapes = fc.array(
    fc.record({
      length: fc.oneof(fc.nat(40), fc.constantFrom(0, 4096, 4097)),
      logprobs: fc.boolean(),
      flags: fc.boolean(),
    }),
    { maxLength: 5 },
  )
  const partsOf = (list: readonly ColumnShape[]): Buffer[] =>
    list.flatMap(({ length, logprobs, flags }, place) => [
      Buffer.alloc(4 * length, `ids${place}`),
      ...(logprobs ? [Buffer.alloc(4 * length, `-${place}.`)] : []),
      ...(flags ? [Buffer.alloc(length, place)] : []),
    ])

  it('come back by segment, bit for bit', () => {
    fc.assert(
      fc.property(shapes, (list) => {
        const parts = partsOf(list)
        const joined = joinColumns(list, parts)
        expect(joined.byteLength).toBe(Buffer.concat(parts).byteLength)
        const back = cutColumns(list, joined).flatMap(({ ids, logprobs, flags }) =>
          [ids, logprobs, flags].filter((column) => column !== null),
        )
        expect(Buffer.concat(back).equals(Buffer.concat(parts))).toBe(true)
        expect(back.map((column) => column.byteLength)).toEqual(parts.map((part) => part.byteLength))
      }),
      { numRuns: 60 },
    )
  })

  it('are refused with another length', () => {
    const list = [{ length: 3, logprobs: true, flags: false }]
    const joined = joinColumns(list, partsOf(list))
    for (const bytes of [joined.subarray(1), Buffer.concat([joined, joined])]) {
      expect(() => cutColumns(list, bytes)).toThrow(expect.objectContaining({ code: 'STORE_CORRUPT' }) as Error)
    }
  })

  it('are those that were stored before: planes of all ids, planes of all logprobs, flags', () => {
    fc.assert(
      fc.property(shapes, (list) => {
        const parts = partsOf(list)
        const sorted: Buffer[][] = [[], [], []]
        let next = 0
        for (const { logprobs, flags } of list) {
          for (const [kind, there] of [true, logprobs, flags].entries()) {
            const part = parts[next]
            if (!there || part === undefined) continue
            sorted[kind]?.push(part)
            next += 1
          }
        }
        const stored = sorted.map((kind, place) => {
          const whole = Buffer.concat(kind)
          return place < 2 && whole.length <= 4 * 4096 ? planes(whole) : whole
        })
        expect(Buffer.concat(stored).equals(joinColumns(list, parts))).toBe(true)
      }),
    )
  })

  it('are byte planes and back', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (numbers) => {
        const whole = new Uint8Array(Int32Array.from(numbers).buffer)
        expect(unsplitPlanes(planes(whole))).toEqual(whole)
      }),
    )
  })
})

/** What two texts have in common, byte by byte. */
function slowDelta(base: Uint8Array, next: Uint8Array): { readonly prefix: number; readonly suffix: number } {
  const limit = Math.min(base.length, next.length)
  let prefix = 0
  while (prefix < limit && base[prefix] === next[prefix]) prefix += 1
  let suffix = 0
  while (suffix < limit - prefix && base.at(-1 - suffix) === next.at(-1 - suffix)) suffix += 1
  return { prefix, suffix }
}

describe('differences', () => {
  it('give any text back from any base', () => {
    fc.assert(
      fc.property(bytes(700), bytes(700), fc.nat(700), fc.nat(700), (base, insert, from, to) => {
        const start = Math.min(from, base.length)
        const next = Buffer.concat([base.subarray(0, start), insert, base.subarray(Math.max(start, to))])
        const delta = findDelta(base, next)
        expect(Buffer.from(applyDelta(base, delta, middleOf(next, delta))).equals(next)).toBe(true)
      }),
    )
  })

  it('keep exactly what two texts share at both ends', () => {
    const [head, tail] = ['h'.repeat(1000), 't'.repeat(300)]
    const delta = findDelta(Buffer.from(`${head}${tail}`), Buffer.from(`${head}-new-${tail}`))
    expect(delta).toEqual({ prefix: 1000, suffix: 300 })
    expect(findDelta(Buffer.from('aaaa'), Buffer.from('aaaaaa'))).toEqual({ prefix: 4, suffix: 0 })
  })

  it('are the same whatever is guessed of them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(1), { maxLength: 900, size: 'max' }),
        fc.nat(900),
        fc.array(fc.nat(1), { maxLength: 300, size: 'max' }),
        fc.nat(1300),
        (shared, at, other, guess) => {
          const base = Uint8Array.from(shared)
          const next = Uint8Array.from([...shared.slice(0, at), ...other, ...shared.slice(at)])
          expect(findDelta(base, next, guess)).toEqual(slowDelta(base, next))
        },
      ),
      // What fails is long, and takes minutes to be made short.
      { seed: 20_261_122, endOnFailure: true },
    )
  })

  it('are refused on a base that is too short', () => {
    expect(() => applyDelta(new Uint8Array(3), { prefix: 2, suffix: 2 }, new Uint8Array(1))).toThrow(/longer/)
  })
})

describe('replies in pieces', () => {
  it('come back with their offsets, whatever the pieces', () => {
    const piece = fc.oneof(
      fc.string({ maxLength: 8 }).map((word) => `data: {"delta":"${word}","finish":null}`),
      fc.string({ maxLength: 20 }),
      fc.constant(''),
    )
    fc.assert(
      fc.property(fc.array(piece, { minLength: 2, maxLength: 60 }), (texts) => {
        const pieces = texts.map((text) => Buffer.from(text))
        const offsets = pieces.map((_piece, place) => Buffer.concat(pieces.slice(0, place)).length)
        const reply = Buffer.concat(pieces)
        const packed = splitReply(reply, marksAt(offsets))
        expect(packed).not.toBeNull()
        const joined = joinReply(packed ?? Buffer.alloc(0))
        expect(Buffer.from(joined.reply).equals(reply)).toBe(true)
        expect(joined.offsets).toEqual(offsets)
      }),
    )
  })

  it('come back where a piece shares less with the one before than that did', () => {
    const pieces = ['data: aaaa1 end', 'data: aaaa2 end', 'data: bbbb2 end', 'data: bbbb2 fin'].map((text) =>
      Buffer.from(text),
    )
    const packed = splitReply(Buffer.concat(pieces), marksAt([0, 15, 30, 45]))
    expect(Buffer.from(joinReply(packed ?? Buffer.alloc(0)).reply).toString()).toBe(Buffer.concat(pieces).toString())
  })

  it.each([
    ['do not begin at the start', [1, 3]],
    ['step back', [0, 4, 2]],
    ['lie outside', [0, 7]],
    ['are alone', [0]],
  ])('are not made where offsets %s', (_what, offsets) => {
    expect(splitReply(Buffer.from('abcdef'), marksAt(offsets))).toBeNull()
  })

  it('are refused when spoiled', () => {
    const packed = splitReply(Buffer.from('data: one\n\ndata: two\n\n'), marksAt([0, 11])) ?? Buffer.alloc(0)
    for (let length = 0; length < packed.length; length += 1) {
      expect(() => joinReply(packed.subarray(0, length))).toThrow(
        expect.objectContaining({ code: 'STORE_CORRUPT' }) as Error,
      )
    }
  })
})

describe('reply marks', () => {
  it('come back, also with steps back and beyond 2^31', () => {
    const mark = fc.record({ offset: fc.nat(2 ** 40), atMs: fc.nat(10_000_000).map((tenths) => tenths / 10) })
    fc.assert(
      fc.property(fc.array(mark), (marks) => {
        expect(unpackMarks(packMarks(asPairs(marks)))).toEqual(marks)
      }),
    )
  })

  it('are refused when cut short', () => {
    const packed = packMarks(asPairs([{ offset: 70_000, atMs: 3 }]))
    for (let length = 0; length < packed.length; length += 1) {
      expect(() => unpackMarks(packed.subarray(0, length))).toThrow(/end inside/)
    }
  })
})

describe('the list of segments', () => {
  const segment = fc.record({
    id: fc.oneof(
      fc.uuid(),
      fc.uuid().map((id) => id.toUpperCase()),
      fc.string({ maxLength: 300 }),
    ),
    length: fc.nat(2 ** 31),
    origin: fc.nat(4),
    stopCut: fc.boolean(),
    logprobs: fc.boolean(),
    flags: fc.boolean(),
  })

  it('comes back as it was, with ids that are UUIDs and others', () => {
    fc.assert(
      fc.property(fc.array(segment), (list) => {
        const wellFormed = list.map((one) => ({ ...one, id: one.id.toWellFormed() }))
        expect(unpackSegmentList(packSegmentList(wellFormed))).toEqual(wellFormed)
      }),
    )
  })

  it('is refused where it is cut', () => {
    const one = { length: 300, origin: 1, stopCut: false, logprobs: true, flags: false }
    const packed = packSegmentList([
      { id: '01890a5d-ac96-774b-bcce-b302099a8057', ...one },
      { id: 'other', ...one },
    ])
    const whole = [1 + 16 + 2, packed.length]
    for (let length = 1; length < packed.length; length += 1) {
      if (whole.includes(length)) continue
      expect(() => unpackSegmentList(packed.subarray(0, length))).toThrow(/end inside/)
    }
  })
})
