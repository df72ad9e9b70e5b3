import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuleResult } from '../reward/index.ts'

/** Answers whose score is known. */
export interface RuleContractOptions {
  /** Each scores 1. */
  readonly right: readonly string[]
  /** Each scores less than 1. */
  readonly wrong: readonly string[]
}

/**
 * Declares the suite for one rule inside a vitest file. An answer is text that a model wrote, so a rule has to give a number from 0
 * to 1 and a reason for any text, the same every time.
 *
 * @example
 * ruleContract('closeTo(42)', closeTo(42), { right: ['42'], wrong: ['43', ''] })
 */
export function ruleContract(
  name: string,
  rule: (answer: string) => RuleResult | Promise<RuleResult>,
  { right, wrong }: RuleContractOptions,
): void {
  const valueOf = async (answer: string): Promise<number> => (await rule(answer)).value
  const scoring = async (
    answers: readonly string[],
    isWanted: (value: number) => boolean,
  ): Promise<readonly string[]> => {
    const values = await Promise.all(answers.map(valueOf))
    return answers.filter((_, i) => isWanted(values[i] ?? Number.NaN))
  }
  const holds = async (answer: string): Promise<void> => {
    const { value, why } = await rule(answer)
    expect(Number.isFinite(value) && value >= 0 && value <= 1, `${value} for ${JSON.stringify(answer)}`).toBe(true)
    expect(why.trim()).not.toBe('')
    expect(await rule(answer)).toEqual({ value, why })
  }

  describe(`ruleContract: ${name}`, () => {
    it('gives 1 to each right answer', async () => {
      expect(await scoring(right, (value) => value !== 1)).toEqual([])
    })

    it('gives less than 1 to each wrong answer', async () => {
      expect(await scoring(wrong, (value) => value === 1)).toEqual([])
    })

    it.each([
      '',
      ' ',
      '\0',
      '\ud800',
      'x'.repeat(200_000),
      '9'.repeat(10_000),
      '{"a":'.repeat(2_000),
      '((((('.repeat(500),
    ])('scores an odd text: %#', (answer) => holds(answer))

    it('gives any text a number from 0 to 1 and a reason, the same every time', async () => {
      await fc.assert(fc.asyncProperty(fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.json()), holds))
      // An answer that is right but for what was added to it is where rules that search instead of compare go wrong.
      for (const answer of right) await holds(`${answer} or not`)
    })
  })
}
