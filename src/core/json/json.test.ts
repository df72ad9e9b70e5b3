import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  canonicalOrRaw,
  canonicalText,
  duplicateKeys,
  editObject,
  nestingDepth,
  parseLossless,
  scanElements,
  scanMembers,
  skipString,
  stringifyLossless,
} from './index.ts'

const bytes = (text: string) => Buffer.from(text)

/** An object text with odd but legal white space, and its members as written. */
const objectText = fc
  .array(fc.tuple(fc.string({ unit: 'grapheme' }), fc.json({ maxDepth: 3 }), fc.constantFrom('', ' ', '\n\t', '  ')), {
    maxLength: 6,
  })
  .map((members) => {
    const unique = members.filter(([key], index) => members.findIndex(([other]) => other === key) === index)
    const body = unique.map(([key, value, space]) => `${space}${JSON.stringify(key)}${space}:${space}${value}${space}`)
    return { text: `{${body.join(',')}}`, members: unique }
  })

describe('skipString', () => {
  it('finds the end of a string of any length, whatever is escaped in it', () => {
    const plain = fc.nat({ max: 200 }).map((length) => 'a'.repeat(length))
    const escaped = fc.nat({ max: 5 }).map((count) => `${'\\\\'.repeat(count)}\\"`)
    const pieces = fc.array(fc.oneof(plain, escaped, fc.constant('\\\\')), { maxLength: 12 })
    fc.assert(
      fc.property(pieces, fc.string(), (parts, behind) => {
        const text = `"${parts.join('')}"`
        expect(skipString(bytes(`:${text}${behind}`), 1)).toBe(1 + text.length)
        expect(() => skipString(bytes(text.slice(0, -1)), 0)).toThrow('does not end')
      }),
      { numRuns: 500 },
    )
  })
})

describe('scanMembers', () => {
  it('finds every member where it stands', () => {
    fc.assert(
      fc.property(objectText, ({ text, members }) => {
        const raw = bytes(text)
        const scanned = scanMembers(raw)
        expect(scanned.end).toBe(raw.length)
        expect(scanned.members.map((m) => [m.key, raw.subarray(m.valueStart, m.valueEnd).toString()])).toEqual(
          members.map(([key, value]) => [key, value.trim()]),
        )
      }),
    )
  })

  it.each(['', '[]', '{', '{"a"', '{"a":}', '{"a":1', '{"a":1,}', '{"a" 1}', '{"a":"x', '{"a":[1}'])(
    'refuses %s with the position',
    (text) => {
      expect(() => scanMembers(bytes(text))).toThrow(/Not valid JSON: .* at byte \d+/)
    },
  )

  it('finds the elements of an array', () => {
    const raw = bytes('[ {"a":"]"} , 1.0,"x" ]')
    expect(scanElements(raw, 0).map(({ start, end }) => raw.subarray(start, end).toString())).toEqual([
      '{"a":"]"}',
      '1.0',
      '"x"',
    ])
  })

  it('measures nesting without recursion and not inside strings', () => {
    expect(nestingDepth(bytes('{"a":[[{"b":"[[[["}]]}'))).toBe(4)
    expect(nestingDepth(Buffer.alloc(200_000, '['))).toBe(200_000)
  })
})

describe('keys', () => {
  it('are decoded, those that were met before too', () => {
    const text = String.raw`{"a":1,"\u0061":2,"\n":3,"é":4,"a":5,"\u0061":6}`
    for (let again = 0; again < 2; again += 1) {
      expect(scanMembers(bytes(text)).members.map(({ key }) => key)).toEqual(['a', 'a', '\n', 'é', 'a', 'a'])
    }
  })
})

describe('editObject', () => {
  it('changes what it is told and leaves every other byte', () => {
    fc.assert(
      fc.property(objectText, fc.json(), fc.nat(), ({ text, members }, value, pick) => {
        const keys = members.map(([key]) => key)
        const target = keys.length > 0 && pick % 2 === 0 ? (keys[pick % keys.length] ?? 'new') : 'brand new'
        const removed = keys.filter((key, index) => key !== target && (pick >> index) % 2 === 1)
        const edited = editObject(bytes(text), { set: { [target]: value }, remove: removed })
        const before = scanMembers(bytes(text)).members
        const after = scanMembers(edited).members
        const untouched = before.filter((m) => m.key !== target && !removed.includes(m.key))
        for (const member of untouched) {
          const now = after.find((m) => m.key === member.key)
          expect(now && edited.subarray(now.keyStart, now.valueEnd).toString()).toBe(
            bytes(text).subarray(member.keyStart, member.valueEnd).toString(),
          )
        }
        expect(after.map((m) => m.key)).toEqual([
          ...before.map((m) => m.key).filter((key) => !removed.includes(key)),
          ...(keys.includes(target) ? [] : [target]),
        ])
        const set = after.find((m) => m.key === target)
        expect(set && edited.subarray(set.valueStart, set.valueEnd).toString()).toBe(value.trim())
      }),
    )
  })

  it('touches nothing when there is nothing to do', () => {
    const text = ' { "a" : 1.0 , "b":[1, 2] }\n'
    expect(editObject(bytes(text), { remove: ['c'] }).toString()).toBe(text)
  })

  it('sets the last of duplicate keys and drops the others', () => {
    expect(editObject(bytes('{"a":1,"b":2,"a":3}'), { set: { a: '9' } }).toString()).toBe('{"b":2,"a":9}')
  })

  it('adds the same members to one body after another, and to an empty one, whether they can change or not', () => {
    const fixed = Object.freeze({ a: '1', é: '2' })
    const loose = { z: '0' }
    for (const set of [fixed, fixed, loose, loose, fixed]) {
      const added = JSON.stringify(Object.fromEntries(Object.entries(set).map(([key, value]) => [key, Number(value)])))
      expect(editObject(bytes('{}'), { set }).toString()).toBe(added)
      expect(editObject(bytes('{"b":3 }\n'), { set }).toString()).toBe(`{"b":3 ,${added.slice(1)}\n`)
      loose.z = `${Number(loose.z) + 1}`
    }
    expect(editObject(bytes('{}'), { set: {} }).toString()).toBe('{}')
  })

  it('removes first, last and only members with their commas', () => {
    expect(editObject(bytes('{"a":1,"b":2,"c":3}'), { remove: ['a', 'b'] }).toString()).toBe('{"c":3}')
    expect(editObject(bytes('{"a":1,"b":2,"c":3}'), { remove: ['b', 'c'] }).toString()).toBe('{"a":1}')
    expect(editObject(bytes('{"a":1}'), { remove: ['a'], set: { z: 'null' } }).toString()).toBe('{"z":null}')
  })
})

describe('lossless JSON', () => {
  it('gives compact text back unchanged', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const compact = JSON.stringify(JSON.parse(text))
        expect(stringifyLossless(parseLossless(compact))).toBe(compact)
      }),
    )
  })

  it('keeps what JSON.parse loses', () => {
    const text = '{"b":1.0,"a":-0,"big":12345678901234567890,"e":1E+2,"b":"\\u00e9\\ud800\\/"}'
    const value = parseLossless(text)
    expect(stringifyLossless(value)).toBe(text)
    expect(duplicateKeys(value)).toEqual(['b'])
  })

  it('accepts exactly what JSON.parse accepts', () => {
    const near = fc.oneof(
      fc.json(),
      fc.string(),
      fc.json().map((text) => text.slice(0, -1)),
    )
    fc.assert(
      fc.property(near, (text) => {
        let good = true
        try {
          JSON.parse(text)
        } catch {
          good = false
        }
        if (good) expect(() => parseLossless(text)).not.toThrow()
        else expect(() => parseLossless(text)).toThrow(/Not valid JSON/)
      }),
      { numRuns: 500 },
    )
  })

  it('refuses deep nesting instead of overflowing the stack', () => {
    expect(() => parseLossless('['.repeat(100_000))).toThrow(/nested too deeply/)
  })
})

describe('canonical text', () => {
  it('is the same whatever the order of keys and the white space', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const shuffle = (value: unknown): unknown =>
          Array.isArray(value)
            ? value.map(shuffle)
            : value !== null && typeof value === 'object'
              ? Object.fromEntries(
                  Object.entries(value)
                    .reverse()
                    .map(([k, v]) => [k, shuffle(v)]),
                )
              : value
        const other = JSON.stringify(shuffle(JSON.parse(text)), null, 2)
        expect(canonicalText(parseLossless(other))).toBe(canonicalText(parseLossless(text)))
      }),
    )
  })

  it('compares numbers by value and stays exact', () => {
    expect(canonicalOrRaw('[1.0,10e-1,1]')).toBe(canonicalOrRaw('[1,1,1]'))
    expect(canonicalOrRaw('12345678901234567890')).not.toBe(canonicalOrRaw('12345678901234567891'))
    expect(canonicalOrRaw('-0.0')).toBe(canonicalOrRaw('0'))
    expect(canonicalOrRaw('{not json')).toBe('{not json')
    expect(canonicalOrRaw('1e9007199254740993')).not.toBe(canonicalOrRaw('1e9007199254740992'))
    // Quadratic time would be minutes.
    const long = `1${'0'.repeat(500_000)}1`
    expect(canonicalOrRaw(long)).toBe(`${long}e0`)
  })
})
