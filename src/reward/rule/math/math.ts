import { quote, type TextRule, tooLong, verdictOf } from '../rule.ts'
import { type Answer, attempt, read } from './answer.ts'
import { same } from './compare.ts'
import { Field } from './field.ts'
import { functionsOf } from './parse.ts'
import { Effort } from './rational.ts'
import { canonical, lastBoxed, undressed, unwrapped } from './text.ts'

/** Longest gold or answer that is looked at, in UTF-16 units: what is longer is no answer but a text. */
const longest = 1000

export function math(gold: string): TextRule {
  const inner = lastBoxed(gold) ?? gold
  const wanted = undressed(inner)
  if (wanted === '') throw new RangeError(`The gold ${quote(gold)} is empty.`)
  if (inner.length > longest)
    throw new RangeError(`The gold ${quote(inner)} has ${inner.length} characters; at most ${longest} are compared.`)
  return (answer) => {
    const given = lastBoxed(answer) ?? answer
    if (given.length > longest) return tooLong(given, longest)
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
