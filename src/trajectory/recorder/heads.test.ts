import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { newId, sha256 } from '../../core/index.ts'
import { readDigest, readId } from '../sqlite/index.ts'
import type { BeginCall } from './log-head.ts'
import { beginCallHead, endCallHead, readHead, settleDeliveryHead } from './heads.ts'

const uuid = fc.uuid()
const count = fc.nat(2 ** 32 - 1)
const delta = fc.record({ prefix: count, suffix: count })
const time = fc.integer({ min: 0, max: 2 ** 45 })
const digest = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex'))
const begun: fc.Arbitrary<BeginCall> = fc
  .record({
    op: fc.constant('beginCall' as const),
    id: uuid,
    session: uuid,
    seq: fc.nat(),
    startedAt: time,
    requestDigest: digest,
    base: fc.option(uuid),
    depth: fc.integer({ min: 1, max: 4095 }),
    facts: delta,
    body: delta,
  })
  .map((head) => (head.base === null ? { ...head, depth: 0 } : head))

const seed = 20_261_122
console.log(`heads: seed ${seed}`)

describe('heads of bytes', () => {
  it('say of an intent what was said', () => {
    fc.assert(
      fc.property(begun, (head) => {
        const bytes = beginCallHead(head)
        expect(bytes).toBeInstanceOf(Buffer)
        const read = readHead(bytes as Buffer) as BeginCall<Uint8Array>
        expect({
          ...read,
          id: readId(read.id),
          session: readId(read.session),
          requestDigest: readDigest(read.requestDigest),
          base: read.base === null ? null : readId(read.base),
        }).toEqual(head)
      }),
      { seed },
    )
  })

  it('say of an end and of a delivery what was said', () => {
    fc.assert(
      fc.property(uuid, time, fc.constantFrom('sent', 'echoed', 'unknown'), (id, endedAt, delivery) => {
        const end = readHead(endCallHead({ op: 'endCall', id, endedAt }) as Buffer)
        expect(end).toMatchObject({ op: 'endCall', endedAt })
        const told = readHead(settleDeliveryHead({ op: 'settleDelivery', id, delivery }) as Buffer)
        expect(told).toMatchObject({ op: 'settleDelivery', delivery })
        for (const head of [end, told]) expect('id' in head && readId(head.id)).toBe(id)
      }),
      { seed },
    )
  })

  it.each([
    ['no UUID', 'call-1'],
    ['capitals', '0190A0B0-0000-7000-8000-000000000000'],
    ['no hyphens where they belong', '0190a0b00-000-7000-8000-000000000000'],
    ['letters that are no digits', '0190a0b0-0000-7000-8000-00000000000g'],
    ['letters beyond ASCII', '0190a0b0-0000-7000-8000-00000000000\u0130'],
  ])('are not made of an id with %s', (_what, id) => {
    const end = { op: 'endCall', id, endedAt: 1 } as const
    expect(endCallHead(end)).toBe(end)
    const told = { op: 'settleDelivery', id, delivery: 'sent' } as const
    expect(settleDeliveryHead(told)).toBe(told)
    const [head] = fc.sample(begun, { numRuns: 1, seed })
    if (head === undefined) throw new Error('no sample')
    for (const name of ['id', 'session', 'requestDigest'] as const) {
      const changed = { ...head, [name]: id }
      expect(beginCallHead(changed)).toBe(changed)
    }
  })

  it('of an unknown kind are refused', () => {
    expect(() => readHead(Buffer.from([9]))).toThrow(expect.objectContaining({ code: 'STORE_CORRUPT' }) as Error)
  })
})

it('writes the same intent as the same bytes, and nothing of what memory held before', () => {
  const id = newId()
  const part = { prefix: 0, suffix: 0 }
  const head = { op: 'beginCall', id, session: id, seq: 0, startedAt: 1, requestDigest: sha256('r') } as const
  const written = Array.from({ length: 200 }, (_none, place) => {
    Buffer.allocUnsafe(117).fill(place)
    return beginCallHead({ ...head, base: null, depth: 0, facts: part, body: part })
  })
  for (const bytes of written) expect(bytes).toEqual(written[0])
  expect(Buffer.from(written[0] as Uint8Array).subarray(65, 81)).toEqual(Buffer.alloc(16))
})
