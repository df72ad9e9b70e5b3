import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { eachWord, termsOf } from './index.ts'
import { porterStem } from './porter.ts'

function words(text: string): string[] {
  const found: string[] = []
  eachWord(text, (word) => found.push(word))
  return found
}

describe('words', () => {
  test.each([
    ["It's 3.14, or 1,000;000 — e.g. U.S.A.!", ["it's", '3.14', 'or', '1,000;000', 'e.g', 'u.s.a']],
    ['foo_bar ___ x-ray a.1 1.a c:d', ['foo_bar', 'x', 'ray', 'a', '1', '1', 'a', 'c:d']],
    ["'quoted' rock 'n' roll.", ['quoted', 'rock', 'n', 'roll']],
    ['Ærøskøbing, naïve café’s Łódź', ['ærøskøbing', 'naïve', 'café’s', 'łódź']],
    ['東京 tower', ['東', '京', 'tower']],
    // Decomposed accents, a ligature, full-width and mathematical letters, a superscript.
    ['Lo\u0301dz\u0301 o\ufb03ce', ['l\u00f3d\u017a', 'office']],
    ['\uff34\uff4f\uff4b\uff59\uff4f \uff12\uff10', ['tokyo', '20']],
    ['\ud835\udc00\ud835\udc01 m\u00b2', ['ab', 'm2']],
    ['', []],
  ])('of %j', (text, expected) => expect(words(text)).toEqual(expected))

  test('are those of UAX #29 as ICU cuts them, for ASCII', () => {
    const icu = new Intl.Segmenter('en', { granularity: 'word' })
    const characters = "abzXY019_'.,; -!()\n".split('')
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...characters), { maxLength: 40 }), (parts) => {
        const text = parts.join('')
        const expected = [...icu.segment(text)].map((s) => s.segment.toLowerCase()).filter((s) => /[a-z0-9]/.test(s))
        expect(words(text)).toEqual(expected)
      }),
      { numRuns: 2000, seed: 11 },
    )
  })

  test('of a text are the same by hand and by pattern', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(..."abX09_'.,;: -".split('')), { maxLength: 40 }), (parts) => {
        const text = parts.join('')
        // A word beyond ASCII sends the whole text through the pattern.
        expect(words(`${text} ø`)).toEqual([...words(text), 'ø'])
      }),
      { numRuns: 2000, seed: 12 },
    )
  })

  test('longer than 255 characters are cut into pieces', () => {
    expect(words(`${'a'.repeat(600)} b`).map((word) => word.length)).toEqual([255, 255, 90, 1])
  })
})

// Examples of the paper, and of the sample output on the author's page (tartarus.org/martin/PorterStemmer).
test.each(
  `caresses caress, ponies poni, ties ti, caress caress, cats cat, feed feed, agreed agre, plastered plaster, bled bled,
  motoring motor, sing sing, conflated conflat, troubled troubl, sized size, hopping hop, tanned tan, falling fall,
  hissing hiss, fizzed fizz, failing fail, filing file, happy happi, sky sky, relational relat, conditional condit,
  rational ration, valenci valenc, digitizer digit, conformabli conform, radicalli radic, differentli differ, vileli vile,
  analogousli analog, vietnamization vietnam, predication predic, operator oper, feudalism feudal, decisiveness decis,
  hopefulness hope, callousness callous, formaliti formal, sensitiviti sensit, sensibiliti sensibl, triplicate triplic,
  formative form, formalize formal, electriciti electr, electrical electr, hopeful hope, goodness good, revival reviv,
  allowance allow, inference infer, airliner airlin, gyroscopic gyroscop, adjustable adjust, defensible defens,
  irritant irrit, replacement replac, adjustment adjust, dependent depend, adoption adopt, homologou homolog,
  communism commun, activate activ, angulariti angular, homologous homolog, effective effect, bowdlerize bowdler,
  probate probat, rate rate, cease ceas, controll control, roll roll, abilities abil, generalizations gener, oscillators
  oscil, archaeology archaeolog, as as, y y, 3rds 3rds`
    .split(',')
    .map((pair) => pair.trim().split(/\s+/)),
)('the stem of %s is %s', (word = '', stem) => expect(porterStem(word)).toBe(stem))

test('terms leave stop words and possessives out', () => {
  expect(termsOf("The founders of Mira's school, and its rivers")).toEqual(['founder', 'mira', 'school', 'it', 'river'])
})
