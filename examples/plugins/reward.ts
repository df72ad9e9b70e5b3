/** A reward of one's own: half a point for an answer within a tenth of the right one. A rule is a function of a text. */
import { numeric, type Rule } from 'paddock-rl/reward'

export function closeTo(gold: number): Rule {
  const exact = numeric(gold)
  return async (answer) => {
    const result = await exact(answer)
    const off = Math.abs(Number(answer) - gold)
    if (result.value === 1 || answer.trim() === '' || !(off <= Math.abs(gold) / 10)) return result
    return { value: 0.5, why: `${answer} is ${off} away from ${gold}` }
  }
}
