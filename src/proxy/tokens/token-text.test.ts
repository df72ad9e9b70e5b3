import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { spelled, tokenText } from './token-text.ts'

describe('the text of tokens', () => {
  const text = fc.oneof(
    fc.constantFrom('', 'a', 'b', ' ', 'ä€'),
    fc.nat(700).map((length) => 'x'.repeat(length)),
  )

  it('is told again with the length of each, whatever the content is to it', () => {
    fc.assert(
      fc.property(
        fc.array(text, { maxLength: 12 }),
        fc.oneof(
          fc.nat(12).map((count) => (texts: readonly string[]) => texts.slice(0, count).join('')),
          fc.nat(20).map((length) => (texts: readonly string[]) => texts.join('').slice(0, length)),
          fc.constantFrom(
            () => null,
            () => 'other',
          ),
        ),
        (texts, contentOf) => {
          const content = contentOf(texts)
          const stored = tokenText(texts, content)
          if (stored === null) throw new Error('these tokens are short')
          expect(spelled(stored, content)).toBe(texts.join(''))
          const lengths = Array.from({ length: stored.lengths.length }, (_, at) => stored.lengths.charCodeAt(at))
          expect(lengths).toEqual(texts.map(({ length }) => length))
        },
      ),
      { seed: 20_261_122 },
    )
  })

  it('does not hold the content twice', () => {
    expect(tokenText(['He', 'llo', '<end>'], 'Hello')).toMatchObject({ behindContent: true, rest: '<end>' })
    expect(tokenText(['He', 'llo'], 'Hel')).toMatchObject({ behindContent: false, rest: 'Hello' })
  })

  it('is not told of tokens that no vocabulary has', () => {
    expect(tokenText(['x'.repeat(0x1_0000)], null)).toBeNull()
    expect(tokenText(['x'.repeat(0xffff)], null)?.lengths).toBe('\uffff')
  })
})
