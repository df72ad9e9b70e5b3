import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { math } from './index.ts'

describe('math equivalence', () => {
  const equal: readonly (readonly [string, string])[] = [
    ['\\frac{1}{2}', '0.5'],
    ['\\frac12', '1/2'],
    ['0.5', '50\\%'],
    ['1.5', '1\\frac{1}{2}'],
    ['2\\sqrt{2}', '\\sqrt{8}'],
    ['\\sqrt[3]{27}', '3'],
    ['\\frac{\\pi}{4}', '\\arctan(1)'],
    ['(x+1)^2', 'x^2 + 2x + 1'],
    ['x+1', '\\frac{x^2-1}{x-1}'],
    ['xy', 'y \\cdot x'],
    ['1', '\\sin^2 x+\\cos^2(x)'],
    ['\\sin x', '\\sin(x)'],
    ['1000', '1,000'],
    ['\\{1,2\\}', '\\{2, 1\\}'],
    ['1, 2', '2,1'],
    ['(1,\\frac{1}{2})', '\\left(1, 0.5\\right)'],
    ['[0,1)', '[0, 1)'],
    ['3', 'x = 3'],
    ['90', '90^\\circ'],
    ['\\text{yes}', 'the answer is \\boxed{\\text{yes}}'],
    ['42', 'first \\boxed{41}, no: \\boxed{42}'],
    ['2^{10}', '1024'],
    ['-\\frac{3}{4}', '$-0.75$'],
    ['12345678901234567890', '12345678901234567890'],
  ]
  test.each(equal)('%s is %s', async (gold, answer) => {
    expect((await math(gold))(answer)).toMatchObject({ value: 1 })
  })

  const different: readonly (readonly [string, string])[] = [
    ['\\frac{1}{3}', '0.333'],
    ['12345678901234567890', '12345678901234567891'],
    ['(1,2)', '(2,1)'],
    ['(1,2)', '\\{1,2\\}'],
    ['[0,1]', '[0,1)'],
    ['\\{1,2\\}', '\\{1,2,3\\}'],
    ['\\{1,2\\}', '\\{1,1\\}'],
    ['x', 'y'],
    ['x', '|x|'],
    ['x^2', '2x'],
    ['3', '3, 4'],
    ['3', ''],
    ['3', '3 or 4, I am not sure'],
    ['3', 'ones(1e6)'],
    ['3', 'import("fs")'],
    ['5', '\\boxed{'],
  ]
  test.each(different)('%s is not %s', async (gold, answer) => {
    expect((await math(gold))(answer)).toMatchObject({ value: 0 })
  })

  test('an answer that is too long or too deep is none', async () => {
    const rule = await math('3')
    expect(rule(`3${' '.repeat(5000)}`).value).toBe(0)
    expect(rule(`${'('.repeat(400)}3${')'.repeat(399)}`).value).toBe(0)
  })

  test('any text gets a number, and a gold that is none is refused', async () => {
    const rule = await math('\\frac{x}{2}')
    fc.assert(fc.property(fc.string(), (text) => [0, 1].includes(rule(text).value)))
    const odd = fc.stringMatching(/^[\\{}()[\]^_,=a-z0-9+*/%-]{0,24}$/)
    fc.assert(
      fc.property(odd, (text) => [0, 1].includes(rule(text).value)),
      { numRuns: 50 },
    )
    await expect(math(' $$ ')).rejects.toThrow(RangeError)
  })

  test('numbers are equal in both directions, however they are written', async () => {
    const integer = fc.integer({ min: -999, max: 999 })
    await fc.assert(
      fc.asyncProperty(
        integer,
        integer.filter((n) => n !== 0),
        async (top, bottom) => {
          const [fraction, decimal] = [`\\frac{${top}}{${bottom}}`, String(top / bottom)]
          if (decimal.includes('e')) return
          expect((await math(fraction))(decimal).value).toBe(1)
          expect((await math(decimal))(fraction).value).toBe(1)
          expect((await math(fraction))(`\\frac{${top + 1}}{${bottom}}`).value).toBe(0)
        },
      ),
    )
  })
})
