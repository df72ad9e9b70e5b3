import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { generatedPairs, labelledPairs } from '../../../../bench/math/pairs.ts'
import { math } from './index.ts'

const means = (gold: string, answer: string) => math(gold)(answer).value === 1

describe('math equivalence', () => {
  test('agrees with every labelled pair of the bench', () => {
    const pairs = labelledPairs()
    expect(pairs.length).toBeGreaterThan(400)
    const assumed = (kind: string) => !kind.startsWith('identities')
    const right = pairs.filter(({ gold, answer, equal, kind }) => means(gold, answer) === (equal && assumed(kind)))
    expect(pairs.filter((pair) => !right.includes(pair))).toEqual([])
  })

  test('takes no pair for equal that sympy says is not, and misses few', () => {
    const pairs = generatedPairs()
    expect(pairs.length).toBe(500)
    expect(pairs.filter(({ gold, answer, equal }) => !equal && means(gold, answer))).toEqual([])
    const missed = pairs.filter(({ gold, answer, equal }) => equal && !means(gold, answer))
    expect(missed.filter(({ kind, answer }) => kind !== 'identities' && !/pounds|NO SOLUTION/.test(answer))).toEqual([])
    expect(missed.length).toBeLessThan(10)
  })

  test.each([
    ['ab', 'AB'],
    ['nRT', 'NRT'],
    ['PV=nRT', 'PV=NRT'],
    ['mgh', 'Mgh'],
    ['AaBb', 'aabb'],
    ['AABBc', 'aabbc'],
    ['CO_2', 'Co_2'],
    ['NO', 'no'],
    ['\\theta', '\\Theta'],
    ['5 \\text{ mg}', '5 \\text{ Mg}'],
    ['5\\text{ s}', '5\\text{ S}'],
    ['5\\text{ mJ/s}', '5\\text{ MJ/s}'],
    ['5\\text{ Mbps}', '5\\text{ MBps}'],
    ['5\\text{ MW h}', '5\\text{ mW h}'],
  ])('case is part of a formula and of a unit: %s is not %s', (gold, answer) => {
    expect([means(gold, answer), means(answer, gold), means(gold, ` ${gold} `)]).toEqual([false, false, true])
  })

  test.each(
    (
      'quintillion;score;gross;twelfths;millionths;millones;mil;Millionen;tausend;mille;ppm;wrong;\\text{ is incorrect};false;' +
      'impossible;falsch;\\text{ no es};deficit;debt;\\text{ K};\\text{ M};\\text{ B};K;zillion;Dutzend'
    ).split(';'),
  )('an unknown word is never ignored: 5 is not 5 %s', (word) => {
    expect(means('5', `5 ${word}`)).toBe(false)
  })

  test.each([
    ['x>1 \\text{ and } x<2', 'x>1 \\text{ or } x<2', '1<x<2'],
    ['x<-1 or x>1', 'x<-1 and x>1', '(-\\infty,-1)\\cup(1,\\infty)'],
    ['3 and -3', '3 or -3', '-3 and 3'],
    ['A and B', 'A or B', '\\text{A and B}'],
    ['x < y', 'x < 0', 'y - x > 0'],
    ['x \\ne 2', 'x = 2', '\\mathbb{R}\\setminus\\{2\\}'],
    ['[1,4]', '[1,4)', '[1,3]\\cup[2,4]'],
    ['1<x<2', '1<x\\le 2', 'x\\in(1,2)'],
    ['x > 2', 'x \\ge 2', '(2,\\infty)'],
    ['x > 3', 'x < 3', '-2x < -6'],
    ['a < b', 'a > b', 'b > a'],
    ['p(x+y)', 'p(x)+p(y)', 'p(y+x)'],
    ['T(m+n)', 'T(m)+T(n)', 'T(n+m)'],
    ['u(x)v(y)', 'u(y)v(x)', 'v(y)u(x)'],
    ['\\sigma(mn)', 'm\\sigma(n)', '\\sigma(nm)'],
    ['n(n+1)', 'n(n-1)', 'n^2+n'],
    ['\\ln|x|+C', '\\ln x+C', 'C+\\ln|-x|'],
    ['\\sqrt{|x|}', '\\sqrt x', '\\sqrt{|-x|}'],
    ['|x|', '(\\sqrt x)^2', '\\frac{|2x|}{2}'],
    ['\\sqrt{x^2}', 'x', '\\sqrt{x \\cdot x}'],
    ['\\sqrt{1-x^2}', '\\sqrt{1+x^2}', '\\sqrt{(1-x)(1+x)}'],
    ['1+\\arcsin x', '1+\\arccos x', '\\arcsin x+1'],
    ['\\frac12\\ln\\frac{1+x}{1-x}', '\\frac12\\ln\\frac{1-x}{1+x}', '\\ln\\left(\\frac{x+1}{1-x}\\right)/2'],
    ['4^n', '4n', '2^{2n}'],
    ['x^{3/2}', 'x^{2/3}', 'x\\sqrt x'],
    ['\\frac{1}{\\sqrt x}', '\\sqrt x', '\\frac{\\sqrt x}{x}'],
    ['\\frac{dy}{dx}', '\\frac{y}{x}', '\\dfrac{dy}{dx}'],
    ['5', '6', '\\boxed 5'],
    ['5', '-5', '= 5'],
    ['5', '\\{5, 6\\}', '\\{5\\}'],
    ['5', '{\\bf 6}', '{\\bf 5}'],
    ['(1,2)', '(x,y)=(2,1)', '(x,y)=(1,2)'],
    ['3 \\pmod 7', '3 \\pmod 8', 'x \\equiv 10 \\pmod{7}'],
    [
      '\\begin{pmatrix}2\\\\4\\end{pmatrix}',
      '2\\begin{pmatrix}2\\\\4\\end{pmatrix}',
      '2\\begin{pmatrix}1\\\\2\\end{pmatrix}',
    ],
    [
      '2\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}',
      '\\begin{vmatrix}2&4\\\\6&8\\end{vmatrix}',
      '2 \\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}',
    ],
    ['p \\rightarrow q', 'q \\to p', 'p \\to q'],
    ['x+y=2', 'x+y=3', '2x+2y=4'],
    ['(2x+1)^n', '(2x-1)^n', '(1+2x)^n'],
    ['3+4i', '4+3i', '\\frac{25}{3-4i}'],
    [
      '\\begin{cases} x & x>0 \\\\ -x & x\\le 0\\end{cases}',
      '\\begin{cases} x & x\\ge 0 \\\\ -x & x< 0\\end{cases}',
      '\\begin{cases} x, & \\text{if } x>0 \\\\ -x, & \\text{if } x\\le 0\\end{cases}',
    ],
    ['864 \\mbox{ inches}^2', '864 \\mbox{ inches}', '864 square inches'],
    ['9.8 \\text{ m/s}^2', '9.8 m/s', '9.8 meters per second squared'],
    ['1\\%', '0.01\\%', '1'],
    ['\\text{(C)}', '(D)', '(c)'],
  ])('%s is not %s but %s', (gold, other, same) => {
    expect([means(gold, other), means(gold, same)]).toEqual([false, true])
  })

  test('a gold that is longer than what is compared is refused when the rule is made', () => {
    expect(() => math(`x${'+1'.repeat(600)}`)).toThrow(/1201 characters; at most 1000/)
    expect(means(`x${'+1'.repeat(400)}`, 'x+400')).toBe(true)
  })

  test.each([
    '\\infty',
    '-\\infty',
    'inf',
    '1/0',
    '\\frac{1}{0}',
    '10^{999}',
    '10^{99999}',
    '9^{9^9}',
    '9^{9^{9^{9}}}',
    '1e9999',
    'nan',
    '0^0',
    '\\infty-\\infty',
    '\\tan\\frac{\\pi}{2}',
    '1000!!',
    '99999!',
    '(\\infty,\\infty)',
    '\\{\\infty\\}',
    '\\infty, \\infty',
  ])('%s is no key to any gold', (key) => {
    const golds = [
      '3',
      '0',
      '-1',
      '2^{2024}',
      '\\sqrt{2}',
      'x+1',
      '(1,2)',
      '\\{1\\}',
      '1, 2',
      '[0,1)',
      'yes',
      '\\pm 3',
      'x=3',
      'n!',
    ]
    expect(golds.filter((gold) => means(gold, `\\boxed{${key}}`))).toEqual([])
    expect(means(key, key)).toBe(true)
  })

  test('however small a number is, it is not 0, and what cancels out is', () => {
    const small = ['e^{-200}', '\\sqrt{2}^{-501}', '\\sin(e^{-150})', 'e^{-150}x', '-\\pi^{-200}']
    for (const gold of small) {
      expect(['0', `2${gold}`, `(${gold})^2`, `-(${gold})`].filter((answer) => means(gold, answer))).toEqual([])
      expect(means(gold, `(${gold})+0`)).toBe(true)
    }
    const nothing = ['\\sin\\pi', '\\sqrt2\\sqrt2-2', '\\tan(2\\pi)', '\\ln(\\sqrt2\\sqrt2/2)', '\\cos\\frac{\\pi}{2}']
    expect(nothing.filter((gold) => !means(gold, '0') || !means('0', gold))).toEqual([])
    expect(means('\\frac{1}{\\sin\\pi}', '0')).toBe(false)
  })

  test.each([
    ['12000', '12\u202f000'],
    ['12000', '12\u2009000'],
    ['1500', '1.5 x 10^3'],
    ['1500', '1.5x10**3'],
    ['x^{10}', 'x¹⁰'],
    ['x^{-4}', 'x⁻⁴'],
    ['\\frac13', '⅓'],
    ['2\\frac38', '2⅜'],
    ['0.5', '1⁄2'],
    ['\\frac{1}{2}', '{1 \\over 2}'],
    ['\\frac{x}{2}', 'x\\over 2'],
    ['30^\\circ', '30\\degree'],
    ['6', '**6**'],
    ['6', '`6`'],
  ])('%s is meant by %s, and one more is not', (gold, answer) => {
    expect(means(gold, answer)).toBe(true)
    expect(means(`${gold}+1`, answer)).toBe(false)
  })

  test.each([
    ['(no)', '(on)'],
    ['D B C A', 'A B C D'],
    ['(AC)', '(CA)'],
    ['(a\\ c\\ b)', '(a\\ b\\ c)'],
  ])('letters side by side are in an order: %s is not %s', (gold, answer) => {
    expect([means(gold, answer), means(answer, gold), means(gold, gold)]).toEqual([false, false, true])
  })

  test.each([
    ['f(x+y)', 'f(x)+f(y)', 'f(x + y)'],
    ['2f(x)', 'f(2x)', '2 \\cdot f(x)'],
    ["f'(x)+1", "f'(x+1)", "1+f'(x)"],
    ['f^{-1}(2x)', '2f^{-1}(x)', 'f^{-1}(2x)'],
    ['\\varphi(mn)', 'm\\varphi(n)', '\\varphi(m n)'],
    ['f(x)=2x+1', 'f(x)=2x', 'f(x)=1+2x'],
    ['f(f(x))', 'f^2x', 'f(f(x))'],
    ['h(2x)', '2h(x)', 'h(2x)'],
    ['g(x+y)', 'g(x)+g(y)', 'g(x + y)'],
    ['\\frac{h(a+b)}{2}', '\\frac{h(a)+h(b)}{2}', '\\frac{h(b+a)}{2}'],
  ])('a function of something is no product: %s is not %s', (gold, other, same) => {
    expect([means(gold, other), means(other, gold), means(gold, same)]).toEqual([false, false, true])
  })

  test.each(['\\frac{1}{4}', '\\frac14', '1/4', '2^{-2}', '0.25', '.25'])(
    '%s is a quarter, and not a quarter of a percent',
    (gold) => {
      expect([means(gold, '25\\%'), means(gold, '0.25\\%'), means(gold, `${gold}\\%`)]).toEqual([true, false, false])
    },
  )

  test.each([
    ['2023/05/01', '2023/01/05'],
    ['2023-5-1', '2023-1-5'],
    ['5/1/2023', '1/5/2023'],
    ['01-05-2023', '1-5-2023'],
  ])('a date is no quotient and no difference: %s is not %s', (gold, answer) => {
    expect([means(gold, answer), means(answer, gold), means(gold, gold)]).toEqual([false, false, true])
  })

  test('a number to the base of sixteen is no product with nothing', () => {
    expect(['0', '0xAB', '0xFE'].filter((answer) => means('0xFF', answer))).toEqual([])
    expect([means('255', '0xFF'), means('0xff', '255')]).toEqual([true, true])
  })

  test.each([
    ['5 millions', '5000000'],
    ['5 \\text{ thousands}', '5000'],
    ['5 crore', '5 \\times 10^7'],
    ['5 lakhs', '500000'],
    ['5 quadrillion', '5 \\cdot 10^{15}'],
    ['5 mln', '5000000'],
  ])('%s is %s, and not the number before it', (answer, gold) => {
    expect([means(gold, answer), means('5', answer)]).toEqual([true, false])
  })

  test.each([
    '5 tens',
    '5 point five',
    '5 choose two',
    '5 divided by two',
    '5 multiplied by ten',
    '5 root two',
    '5 doubled',
    '5\\text{ choose 2}',
    '5\\text{ point 5}',
    '5\\text{ e 3}',
    '5\\text{ maybe 4}',
    '5\\text{ maybe four}',
  ])('the words behind 5 in %s are no unit', (answer) => {
    expect(means('5', answer)).toBe(false)
  })

  test('signs of plus and minus are free of one another unless one is turned', () => {
    expect(means('\\pm1\\pm\\sqrt2', '1+\\sqrt2, -1-\\sqrt2')).toBe(false)
    expect(means('\\pm1\\pm\\sqrt2', '1+\\sqrt2, -1-\\sqrt2, 1-\\sqrt2, -1+\\sqrt2')).toBe(true)
    expect(means('\\pm1\\mp\\sqrt2', '1-\\sqrt2, -1+\\sqrt2')).toBe(true)
  })

  test('a list that names nothing has the order of the names', () => {
    expect([means('x=1, y=2', '2, 1'), means('2, 1', 'x=1, y=2')]).toEqual([false, false])
    expect([means('x=1, y=2', '1, 2'), means('x=1, y=2', 'y=2, x=1'), means('x=1, x=2', '2, 1')]).toEqual([
      true,
      true,
      true,
    ])
  })

  test.each(['\\langle %s\\rangle', '\\left< %s \\right>', '\\lbrack %s\\rbrack'])('%s is in order', (brackets) => {
    const of = (items: string) => brackets.replace('%s', items)
    expect([means(of('1,2,3,4'), of('1,3,2,4')), means(of('1,2,3,4'), of('1.0, 2, 3, 4'))]).toEqual([false, true])
  })

  test.each([
    ['\\infty', 'infinity'],
    ['\\binom{n}{k}', '\\frac{n!}{k!(n-k)!}'],
    ['\\binom{n}{k}', '\\binom{n}{n-k}'],
    ['n!\\,k!', 'k!\\,n!'],
    ['(1,2)', '\\langle 1,2\\rangle'],
    ['\\{1,2\\}', '\\lbrace 2,1\\rbrace'],
    ['12000', '12 000'],
    ['1 234 567.5', '1234567.5'],
  ])('%s is %s', (gold, answer) => {
    expect([means(gold, answer), means(answer, gold), means(`${gold}+1`, answer)]).toEqual([true, true, false])
  })

  test('what stands before a sign of equality names the right side, or is no name', () => {
    expect(['x=3', '\\alpha_1=3', 'f(x)=3'].filter((answer) => !means('3', answer))).toEqual([])
    expect(['\\not=3', 'x\\not=3', '\\ne 3', '\\approx=3'].filter((answer) => means('3', answer))).toEqual([])
  })

  test('an answer that is too long or too deep is none', () => {
    const rule = math('3')
    expect(rule(`3${' '.repeat(5000)}`).value).toBe(0)
    expect(rule(`${'('.repeat(400)}3${')'.repeat(399)}`).value).toBe(0)
    expect(rule(`${'('.repeat(400)}3${')'.repeat(400)}`).value).toBe(0)
  })

  test('what would cost too much to compute is no match, and is not computed', () => {
    const costly = ['(x+y+z+a+b+c)^{20}', '(x+\\frac{123456789}{987654321})^{150}']
    expect(costly.filter((text) => means('x', `${text}-${text}+x`))).toEqual([])
    const tower = `${'x^{'.repeat(20)}x${'}'.repeat(20)}`
    expect(means('x', `${tower}-${tower}+x+0`)).toBe(true)
  })

  test('a decimal that is all a double holds stands for the fraction or root, one digit less or another digit does not', () => {
    expect(means('\\frac{1}{3}', '0.3333333333333333')).toBe(true)
    expect(means('1.4142135623730951', '\\sqrt{2}')).toBe(true)
    expect(means('\\frac{1}{3}', '0.33333333333333')).toBe(false)
    expect(means('\\frac{1}{3}', '0.3333333333333334')).toBe(false)
    expect(means('0.3333333333333333', '0.33333333333333331')).toBe(false)
  })

  test('a gold that is empty is refused', () => {
    expect(() => math(' $$ ')).toThrow(RangeError)
  })

  test('any text gets a number', () => {
    const rule = math('\\frac{x}{2}')
    fc.assert(fc.property(fc.string(), (text) => [0, 1].includes(rule(text).value)))
    const odd = fc.stringMatching(/^[\\{}()[\]^_,=a-z0-9+*/%!|.&<>-]{0,40}$/)
    fc.assert(fc.property(odd, (text) => [0, 1].includes(rule(text).value)))
  })
})

describe('properties', () => {
  const integer = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n })
  const decimal = fc.tuple(integer, fc.stringMatching(/^\d{1,12}$/)).map(([whole, digits]) => `${whole}.${digits}`)
  const fraction = fc.tuple(integer, fc.bigInt({ min: 1n, max: 10n ** 20n })).map(([a, b]) => `\\frac{${a}}{${b}}`)
  const number = fc.oneof(integer.map(String), decimal, fraction)
  const { expression } = fc.letrec<{ expression: string }>((tie) => ({
    expression: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.constantFrom('x', 'y', 'x_1', '\\alpha', '\\pi', '2', '\\frac{3}{7}', 'n!', '\\sqrt{5}'),
      fc
        .tuple(tie('expression'), fc.constantFrom('+', '-', ' \\cdot '), tie('expression'))
        .map(([a, o, b]) => `(${a}${o}${b})`),
      tie('expression').map((a) => `\\sin(${a})`),
      tie('expression').map((a) => `(${a})^2`),
    ),
  }))
  const collected = fc
    .tuple(
      fc.constantFrom(['(', ')'], ['[', ')'], ['\\{', '\\}'], ['', '']),
      fc.array(number, { minLength: 2, maxLength: 4 }),
    )
    .map(([[open, close], items]) => `${open}${items.join(', ')}${close}`)
  const wellFormed = fc.oneof(
    number,
    expression,
    collected,
    fc.constantFrom('\\infty', '\\text{yes}', 'DBCA', '\\pm 3', '5 \\text{ cm}'),
  )

  test('each answer means itself, written wider or in a box as well', () => {
    fc.assert(
      fc.property(wellFormed, (text) => {
        expect(
          [text, `$ ${text} $`, `so \\boxed{${text}}`, text.replaceAll(',', ' , ')].filter((one) => !means(text, one)),
        ).toEqual([])
      }),
    )
  })

  test('gold and answer may change places', () => {
    fc.assert(fc.property(wellFormed, wellFormed, (a, b) => means(a, b) === means(b, a)))
    const near = fc
      .tuple(expression, fc.constantFrom('+0', '+1', '\\cdot 1', ''))
      .map(([a, b]) => [a, `${a}${b}`] as const)
    fc.assert(fc.property(near, ([a, b]) => means(a, b) === means(b, a)))
  })

  test('a gold that differs in one digit never matches', () => {
    fc.assert(
      fc.property(number, fc.nat(), fc.integer({ min: 1, max: 9 }), (text, place, by) => {
        const digits = [...text.matchAll(/\d/g)]
        const at = digits[place % digits.length]
        if (at === undefined) return
        const other = `${text.slice(0, at.index)}${(Number(at[0]) + by) % 10}${text.slice(at.index + 1)}`
        // A zero changed into a zero, or a denominator of nothing, is no other number.
        fc.pre(valueOf(other) !== valueOf(text))
        expect(means(text, other)).toBe(false)
        expect(means(`x+${text}`, `x+${other}`)).toBe(false)
        expect(means(`\\sqrt{2}+${text}`, `\\sqrt{2}+${other}`)).toBe(false)
      }),
    )
  })

  test('numbers are equal in both directions, however they are written', () => {
    const small = fc.integer({ min: -999, max: 999 })
    fc.assert(
      fc.property(
        small,
        small.filter((n) => n !== 0),
        (top, bottom) => {
          const [written, printed] = [`\\frac{${top}}{${bottom}}`, String(top / bottom)]
          fc.pre(!printed.includes('e'))
          expect(means(written, printed)).toBe(true)
          expect(means(printed, written)).toBe(true)
          expect(means(written, `\\frac{${top + 1}}{${bottom}}`)).toBe(false)
        },
      ),
    )
  })

  test('words are no products of their letters', () => {
    const word = fc.stringMatching(/^[a-zA-Z]{2,8}$/).filter((text) => !/^(?:[xyz]+|pi|inf|nan)$/i.test(text))
    fc.assert(
      fc.property(word, (text) => {
        const turned = text.split('').toReversed().join('')
        fc.pre(turned.toLowerCase() !== text.toLowerCase())
        expect(means(text, turned)).toBe(false)
        expect(means(`\\text{${text}}`, text.split('').join('\\cdot '))).toBe(false)
      }),
    )
  })
})

/** Fractions by cross multiplication of their digits. */
function valueOf(text: string): string {
  const [, top, bottom] = /^\\frac\{(-?\d+)\}\{(\d+)\}$/.exec(text) ?? []
  if (top !== undefined && bottom !== undefined) {
    const [a, b] = [BigInt(top), BigInt(bottom)]
    const divisor = gcd(a < 0n ? -a : a, b)
    return divisor === 0n ? 'none' : `${a / divisor}/${b / divisor}`
  }
  const [, sign = '', whole = '', behind = ''] = /^(-?)0*(\d*?)(?:\.(\d*?)0*)?$/.exec(text) ?? []
  return whole === '' && behind === '' ? '0' : `${sign}${whole}.${behind}`
}

function gcd(a: bigint, b: bigint): bigint {
  return b === 0n ? a : gcd(b, a % b)
}
