import fc from 'fast-check'
import { expect, it } from 'vitest'
import { keyOf, newKey } from './keys.ts'

it('the key of a bearer header is what stands behind the word and white space, however that is written', () => {
  const key = newKey()
  for (const header of [`Bearer ${key}`, `bearer ${key}`, `Bearer \t ${key}  `, `BEARER  ${key}`, `Bearer ${key} `]) {
    expect(keyOf({ authorization: header })).toBe(key)
  }
  const part = fc.constantFrom('Bearer', 'bearer', ' ', '\t', 'pdk_', 'x', '', 'é')
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
      const authorization = parts.join('')
      const found = /^bearer\s+(.+)$/i.exec(authorization)?.[1]?.trim()
      expect(keyOf({ authorization })).toBe(found === undefined || found === '' ? null : found)
    }),
    { numRuns: 2000 },
  )
})

it('two headers with different keys are refused, with the same one not', () => {
  expect(keyOf({ authorization: 'Bearer a', 'x-api-key': 'a' })).toBe('a')
  expect(keyOf({ 'x-goog-api-key': 'b' })).toBe('b')
  expect(() => keyOf({ authorization: 'Bearer a', 'x-api-key': 'b' })).toThrow('two different keys')
})
