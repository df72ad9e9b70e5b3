import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SseSplitter } from './sse.ts'

const payloads = (text: string) =>
  new SseSplitter().push(Buffer.from(text)).map(({ payload }) => payload?.toString() ?? null)

describe('events of an engine', () => {
  test.each([
    ['data alone', 'data: {"a":1}\n\n'],
    ['no blank', 'data:{"a":1}\n\n'],
    ['a name before', 'event: message\ndata: {"a":1}\n\n'],
    ['a comment before', ': still there\ndata: {"a":1}\n\n'],
    ['an id behind', 'data: {"a":1}\nid: 7\n\n'],
    ['all of them, with carriage returns', 'id: 7\r\nevent: x\r\nretry: 3\r\ndata: {"a":1}\r\n\r\n'],
    ['a mark of the byte order', '\ufeffdata: {"a":1}\n\n'],
  ])('%s', (_, text) => {
    expect(payloads(text)).toEqual(['{"a":1}'])
  })

  test('data on several lines is one value, told on one line', () => {
    const [event] = new SseSplitter().push(Buffer.from('data: {\ndata: "a": "é 漢"\ndata: }\n\n'))
    expect(JSON.parse(event?.payload?.toString() ?? '')).toEqual({ a: 'é 漢' })
    expect(event?.bytes.toString()).toBe('data: { "a": "é 漢" }\n\n')
  })

  test('what holds no data has no payload', () => {
    expect(payloads(': ping\n\nevent: x\n\ndatabase: 1\n\ndata\n\n')).toEqual([null, null, null, null])
  })

  test('are the same wherever the bytes are cut', () => {
    const text = 'data: 1\n\n: c\ndata: "é"\n\ndata: [1,\r\ndata: 2]\r\n\r\nevent: e\ndata: 3\n\n'
    const bytes = Buffer.from(text)
    fc.assert(
      fc.property(fc.nat(bytes.length), fc.nat(bytes.length), (a, b) => {
        const splitter = new SseSplitter()
        const [from, to] = [Math.min(a, b), Math.max(a, b)]
        const parts = [bytes.subarray(0, from), bytes.subarray(from, to), bytes.subarray(to)]
        const found = parts.flatMap((part) => splitter.push(part)).map(({ payload }) => payload?.toString())
        expect(found).toEqual(['1', '"é"', '[1, 2]', '3'])
      }),
    )
  })
})
