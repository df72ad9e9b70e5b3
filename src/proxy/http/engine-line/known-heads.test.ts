import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KnownHeads } from './known-heads.ts'
import { readReplyHead } from './reply-head.ts'

const known =
  'HTTP/1.1 200 OK\r\ndate: Sun, 22 Nov 2026 13:20:00 GMT\r\nserver: uvicorn\r\nContent-Length: 4261\r\ncontent-type: application/json'
const streamed = 'HTTP/1.1 200 OK\r\nDate: Sun, 22 Nov 2026 13:20:00 GMT\r\ntransfer-encoding: chunked'

function knowing(...texts: readonly string[]): KnownHeads {
  const heads = new KnownHeads()
  for (const text of texts) heads.keep(text, readReplyHead(text))
  return heads
}

function find(heads: KnownHeads, wire: string, size = wire.length): { head: unknown; end: number } | null {
  const head = heads.find(Buffer.from(`${wire} HTTP/1.1 404`, 'latin1'), size)
  return head === null ? null : { head, end: heads.end }
}

test('a head of another second and another length is found, and means what it says', () => {
  const heads = knowing(streamed, known)
  for (const length of ['0', '7', '123456789012345']) {
    const text = known.replace('13:20:00', '23:59:59').replace('4261', length)
    const read = readReplyHead(text)
    expect(read).toMatchObject({ frame: { kind: 'length', length: Number(length) } })
    expect(find(heads, `${text}\r\n\r\nbody`)).toEqual({ head: read, end: text.length + 4 })
  }
  expect(find(heads, `${streamed.replace('Nov', 'Dec')}\r\n\r\n`)?.head).toEqual(readReplyHead(streamed))
})

test('a head that has not come to its end is not found', () => {
  const wire = `${known}\r\n\r\n`
  for (let size = 0; size < wire.length; size += 1) expect(find(knowing(known), wire, size)).toBeNull()
  expect(find(knowing(known), wire)).not.toBeNull()
})

test.each([
  ['no length', known.replace('4261', '')],
  ['a length that is too long', known.replace('4261', '1234567890123456')],
  ['a length with a sign', known.replace('4261', '+261')],
  ['a list of lengths', known.replace('4261', '4261, 4261')],
  ['a control character in the date', known.replace('Sun', 'S\u0000n')],
  ['a line end in the date', known.replace('Sun, 22', 'S\r\na: b')],
])('not found: %s', (_name, text) => {
  expect(find(knowing(known), `${text}\r\n\r\n`)).toBeNull()
})

test('what is found would have been read as the same', () => {
  const bytes = fc.oneof(
    fc.constantFrom('\r', '\n', '\t', '0', '9', ',', ' ', ':', '\u0000', '\u007f', 'a'),
    fc.string(),
  )
  const property = fc.property(
    fc.constantFrom(known, streamed),
    fc.nat(130),
    fc.nat(3),
    bytes,
    (text, at, cut, put) => {
      const changed = text.slice(0, at) + Buffer.from(put).toString('latin1') + text.slice(at + cut)
      const found = find(knowing(known, streamed), `${changed}\r\n\r\n`)
      if (found === null) return
      const end = changed.indexOf('\r\n\r\n')
      expect(found).toEqual({ head: readReplyHead(end === -1 ? changed : changed.slice(0, end)), end: found.end })
      expect(found.end).toBe((end === -1 ? changed.length : end) + 4)
    },
  )
  fc.assert(property, { numRuns: 3000, seed: 20261122 })
})

test('of many kinds of heads the last ones are known', () => {
  const heads = knowing(...Array.from({ length: 9 }, (_, i) => `${streamed}\r\nx: ${i}`))
  const found = Array.from({ length: 9 }, (_, i) => find(heads, `${streamed}\r\nx: ${i}\r\n\r\n`) !== null)
  expect(found).toEqual([false, false, false, false, false, true, true, true, true])
})
