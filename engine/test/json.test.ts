import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, dumpJson, JsonNumber, parseJson } from '../src/json/lossless.ts'

describe('lossless JSON', () => {
  it('keeps number lexemes, key order and repeated shapes', () => {
    const text = '{"b": 1.0, "10": -0, "a": [12345678901234567890, 1e5, 1E-7], "n": null, "e": {}}'
    expect(dumpJson(parseJson(text))).toBe(text)
  })

  it('reads what JSON.parse reads, for any JSON text', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value)
        expect(JSON.parse(dumpJson(parseJson(text)))).toEqual(JSON.parse(text))
      }),
    )
  })

  it.each(['', '{', '{"a":}', '[1,]', '01', '1.', '"\u0001"', '"a', 'nul', '{} x', '{a:1}', 'NaN', '+1', '"\\x"'])(
    'refuses %j',
    (text) => {
      expect(() => parseJson(text)).toThrow(SyntaxError)
    },
  )

  it('refuses depths that would exhaust the stack', () => {
    expect(() => parseJson('['.repeat(100_000))).toThrow(/deeper/)
  })

  it('compares by meaning: key order and spacing do not matter, values do', () => {
    const same = canonicalJson(parseJson('{"a":1,"b":{"y":2,"x":[true]}}'))
    expect(canonicalJson(parseJson('{ "b": {"x": [true], "y": 2.0}, "a": 1 }'))).toBe(same)
    expect(canonicalJson(parseJson('{"a":1,"b":{"y":2,"x":[false]}}'))).not.toBe(same)
  })

  it('writes strings as Python does without ascii escapes', () => {
    expect(dumpJson(parseJson('"\\u00e9\\n\\/"'))).toBe('"é\\n/"')
    expect(parseJson('7')).toEqual(new JsonNumber('7'))
  })
})
