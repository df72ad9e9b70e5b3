import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  answerContains,
  answerF1,
  answerInEvidence,
  answerMatch,
  citationsGrounded,
  duplicateQueries,
  evidenceRecall,
  normaliseAnswer,
  overSearch,
  penalised,
} from './index.ts'

test.each([
  ['The  Old, Mill!', 'old mill'],
  ["St. John's", 'st johns'],
  ['an a the', ''],
  ['Łódź', 'łódź'],
  ['theatre anthem', 'theatre anthem'],
  ['España à la carte', 'españa à la carte'],
  ['x-ray', 'xray'],
])('%j is compared as %j', (text, expected) => expect(normaliseAnswer(text)).toBe(expected))

test('normalising twice changes nothing more', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      // A word can lose its middle and become an article, which the field's formula leaves; letters alone cannot.
      const plain = text.replace(/[^a-z ]/gi, '')
      expect(normaliseAnswer(normaliseAnswer(plain))).toBe(normaliseAnswer(plain))
    }),
    { seed: 31 },
  )
})

describe('answers', () => {
  const golds = ['Old Mill', 'the Old Watermill']
  test.each([
    ['old mill.', 1, 1, 1],
    ['The old watermill', 1, 1, 1],
    ['It is the Old Mill in Goxby', 0, 1, (2 * 2) / (6 + 2)],
    ['mill', 0, 0, 2 / 3],
    ['old old old', 0, 0, 2 / 5],
    ['new bridge', 0, 0, 0],
    ['', 0, 0, 0],
    ['the', 0, 0, 0],
  ])('%j: em %d, contains %d, F1 %d', (answer, em, contains, f1) => {
    expect(answerMatch(golds)(answer).value).toBe(em)
    expect(answerContains(golds)(answer).value).toBe(contains)
    expect(answerF1(golds)(answer).value).toBeCloseTo(f1, 12)
  })

  // Figures of `f1_score` and `exact_match_score` in hotpot_evaluate_v1.py, run on the same pairs.
  test.each([
    ['yes no', 'yes', 0, 0],
    ['yes', 'yes', 1, 1],
    ['Yes.', 'yes', 1, 1],
    ['yes, it is', 'yes', 0, 0],
    ['no', 'yes', 0, 0],
    ['no', 'no man is an island', 0, 0],
    ['yes', 'Yes Minister', 0, 0],
    ['noanswer', 'noanswer', 1, 1],
    ['no answer', 'noanswer', 0, 0],
    ['noanswer', 'the answer', 0, 0],
    ['Minister', 'Yes Minister', 0, 2 / 3],
    ['not yes', 'not no', 0, 0.5],
    ['the the', 'cat', 0, 0],
    ['España', 'Españ', 0, 0],
    ['1871 or 1872', '1871', 0, 0.5],
  ])('%j for %j: em %d and F1 %d, as in the official script', (answer, gold, em, value) => {
    expect(answerMatch([gold])(answer).value).toBe(em)
    expect(answerF1([gold])(answer).value).toBeCloseTo(value, 12)
  })

  test('of several golds the best counts, and a yes that one of them wants is no part of another', () => {
    expect(answerF1(['yes', 'yes we can'])('yes').value).toBe(1)
    expect(answerF1(['no', 'yes we can'])('yes we').value).toBeCloseTo(0.8, 12)
  })

  test.each([
    ['A', 'A', 1],
    ['A', ' a ', 1],
    ['A', 'The', 0],
    ['A', '', 0],
    ['A', 'a cat', 0],
    ['A', 'A.', 1],
    ['A', '(a)', 1],
    ['A.', '"A"', 1],
    ['A', 'A+', 0],
    ['A+', 'A', 0],
    ['A', '.', 0],
    ['!', '!', 1],
    ['!', '.', 0],
    ['The The', 'the the', 1],
    ['The The', 'the', 0],
    ['+', '+', 1],
    ['+', '-', 0],
    ['+', '', 0],
    [' ', '', 0],
  ])('the gold %j, of which normalising leaves nothing, is met by itself only: %j %d', (gold, answer, value) => {
    for (const rule of [answerMatch, answerContains, answerF1]) expect(rule([gold])(answer).value).toBe(value)
  })

  test('F1 is symmetric, and an exact match has 1 in all three', () => {
    const words = fc.array(fc.constantFrom('old', 'mill', 'river', 'the', '1871'), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(words, words, (a, b) => {
        const [left, right] = [a.join(' '), b.join(' ')]
        expect(answerF1([left])(right).value).toBe(answerF1([right])(left).value)
        if (answerMatch([left])(right).value === 1) {
          expect([answerContains([left])(right).value, answerF1([left])(right).value]).toEqual([1, 1])
        }
      }),
      { seed: 32 },
    )
  })
})

test('evidence recall counts distinct pieces', () => {
  expect(evidenceRecall(['a', 'b'], ['b', 'b', 'x']).value).toBe(0.5)
  expect(evidenceRecall(['a'], []).value).toBe(0)
  expect(evidenceRecall([], []).value).toBe(1)
})

test('citations count only when they were shown', () => {
  const shown = new Set(['a', 'b'])
  expect(citationsGrounded(['a', 'a', 'b'], shown).value).toBe(1)
  expect(citationsGrounded(['a', 'z'], shown).value).toBe(0.5)
  expect(citationsGrounded([], shown).value).toBe(0)
})

test('an answer is in the evidence as whole words', () => {
  expect(answerInEvidence('1871', ['built in 1871.']).value).toBe(1)
  expect(answerInEvidence('71', ['built in 1871.']).value).toBe(0)
  expect(answerInEvidence('', ['built in 1871.']).value).toBe(0)
})

test('penalties take shares of what was earned, and never turn the order of right and wrong', () => {
  expect(duplicateQueries(['a', 'b', 'a', 'a']).value).toBe(0.5)
  expect(duplicateQueries([]).value).toBe(0)
  expect([3, 4, 5, 20].map((count) => overSearch(count, 4).value)).toEqual([0, 0, 0.25, 1])
  expect(penalised(1, { duplicates: 0.5, over: 1 }, { duplicates: 0.2, over: 0.1 })).toBeCloseTo(0.8, 12)
  expect(penalised(0, { over: 1 }, { over: 0.5 })).toBe(0)
  expect(penalised(1, { over: 1 }, { over: 5 })).toBe(0)
})
