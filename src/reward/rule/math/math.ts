import { quote, type Rule, verdictOf } from '../rule.ts'
import { type Answer, attempt, read } from './answer.ts'
import { same } from './compare.ts'
import { Field } from './field.ts'
import { functionsOf } from './parse.ts'
import { Effort } from './rational.ts'
import { canonical, lastBoxed, undressed, unwrapped } from './text.ts'

/** Longest gold or answer that is looked at, in UTF-16 units: what is longer is no answer but a text. */
const longest = 1000

/**
 * 1 when an answer means what gold means. It is compared by value only as far as the grammar understands both whole, LaTeX or
 * plain: numbers, closed forms in roots, π and e (to 90 of 110 digits), rational functions over letters and functions with
 * exact coefficients, tuples, sets and lists, intervals, unions and inequalities, matrices, cases, equations up to a factor,
 * residues, and units from a table. Anything else equals the same text only; words of a language without regard to case.
 * Of an answer with `\boxed{…}` the last box counts.
 *
 * A unit may be left off, another unit is another answer; `50\%` is 0.5, and 50 where it is asked for in percent; `25_8` is not
 * 25. A rounded decimal is not the fraction or root that it was rounded from, unless it is all that a double holds. No identity
 * across functions is assumed: `\sin^2 x + \cos^2 x` is not 1, `\sqrt{x^2}` is not x. Common factors cancel, `x/x` is 1.
 *
 * @param gold The right answer.
 * @returns A rule with the value 1 or 0.
 * @throws RangeError for a gold that is empty, or longer than 1,000 UTF-16 units.
 * @example
 * const rule = math('\\frac{1}{2}')
 * rule('\\boxed{0.5}').value // 1
 */
export function math(gold: string): Rule {
  const inner = lastBoxed(gold) ?? gold
  const wanted = undressed(inner)
  if (wanted === '') throw new RangeError(`The gold ${quote(gold)} is empty.`)
  if (inner.length > longest)
    throw new RangeError(`The gold ${quote(inner)} has ${inner.length} characters; at most ${longest} are compared.`)
  return (answer) => {
    const given = lastBoxed(answer) ?? answer
    if (given.length > longest) return verdictOf(false, `an answer of ${given.length} characters`)
    const equal = isSame(wanted, undressed(given))
    return verdictOf(equal, `${quote(given)} ${equal ? 'is' : 'is not'} ${quote(gold)}`)
  }
}

function isSame(gold: string, given: string): boolean {
  if (canonical(gold) === canonical(given)) return true
  if (isChoice(gold) && isChoice(given)) return letterOf(gold) === letterOf(given)
  const field = new Field(new Effort())
  const [letters, others] = [functionsOf(unwrapped(gold)), functionsOf(unwrapped(given))]
  // Gold says what a letter is; an f is a function wherever it may be one.
  const isFunction = (letter: string) =>
    (/^[fF]$/.test(letter) && others.get(letter)) || (letters.get(letter) ?? others.get(letter) ?? false)
  const wanted = attempt(() => read(gold, { field, isFunction, units: false }))
  if (wanted === null) return false
  return [false, true].some((units) => {
    if (units && unitOf(wanted) === '') return false
    return attempt(() => same(wanted, read(given, { field, isFunction, units }), { field, isFunction })) ?? false
  })
}

function unitOf(answer: Answer): string {
  if (answer.kind === 'equation') return answer.value === null ? '' : unitOf(answer.value)
  return answer.kind === 'value' ? answer.unit : ''
}

/** `(B)` and `\text{B}`: letters that are chosen, and no variables. */
function isChoice(text: string): boolean {
  return /^(?:\\text(?:bf|rm|it)?\s*\{\s*\(?[A-Ja-j]\)?\.?\s*\}|\(\s*[A-Ja-j]\s*\)\.?)$/.test(text)
}

function letterOf(text: string): string {
  return unwrapped(text)
    .replaceAll(/[\s().]/g, '')
    .toUpperCase()
}
