import fc from 'fast-check'
import { expect, it } from 'vitest'
import { previewOf } from './call-line.ts'

it('shows the beginning of a text in one line, of a text without odd white space as of any other', () => {
  const words = fc.array(fc.constantFrom('a', 'word', ' ', '  ', '\n', '\t', '\u00a0', '\u{1f600}'), { maxLength: 400 })
  fc.assert(
    fc.property(words, (parts) => {
      const text = parts.join('')
      expect(previewOf(text)).toBe(text.slice(0, 1000).replace(/\s+/g, ' ').slice(0, 120))
    }),
  )
  expect(previewOf(`${'x '.repeat(60)} y`)).toBe('x '.repeat(60))
})
