import { quote, type TextRule, verdictOf } from '../rule.ts'
import { comparableGolds, type Gold, normaliseAnswer } from './normalise.ts'

export function answerMatch(golds: readonly string[]): TextRule {
  const wanted = comparableGolds(golds)
  return (answer) => {
    const met = wanted.find(({ text, of }) => of(answer) === text)
    return met === undefined
      ? verdictOf(false, `${quote(normaliseAnswer(answer))} is not ${listed(wanted)}`)
      : verdictOf(true, `equals ${quote(met.text)}`)
  }
}

export function answerContains(golds: readonly string[]): TextRule {
  const wanted = comparableGolds(golds)
  return (answer) => {
    const found = wanted.find(({ text, of }) =>
      of === normaliseAnswer ? of(answer).includes(text) : of(answer) === text,
    )
    return found === undefined
      ? verdictOf(false, `${quote(normaliseAnswer(answer))} does not contain ${listed(wanted)}`)
      : verdictOf(true, `contains ${quote(found.text)}`)
  }
}

/** Answers that are right or wrong as a whole. */
const whole: ReadonlySet<string> = new Set(['yes', 'no', 'noanswer'])

export function answerF1(golds: readonly string[]): TextRule {
  const wanted = comparableGolds(golds)
  return (answer) => {
    const [best] = wanted.map((gold) => ({ gold, value: f1(answer, gold) })).toSorted((a, b) => b.value - a.value)
    if (best === undefined || answer.trim() === '') return { value: 0, why: 'there is nothing to compare' }
    return { value: best.value, why: `nearest gold ${quote(best.gold.text)}` }
  }
}

function f1(answer: string, { of, text: gold }: Gold): number {
  const given = of(answer)
  if (given === gold) return 1
  if (given === '' || of !== normaliseAnswer || whole.has(given) || whole.has(gold)) return 0
  const [words, wanted] = [given.split(' '), gold.split(' ')]
  const left = new Map<string, number>()
  for (const word of wanted) left.set(word, (left.get(word) ?? 0) + 1)
  let shared = 0
  for (const word of words) {
    const count = left.get(word) ?? 0
    if (count === 0) continue
    left.set(word, count - 1)
    shared += 1
  }
  return (2 * shared) / (words.length + wanted.length)
}

function listed(golds: readonly Gold[]): string {
  return golds.map(({ text }) => quote(text)).join(' or ')
}
