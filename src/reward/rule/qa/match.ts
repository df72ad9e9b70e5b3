import { quote, type Rule, verdictOf } from '../rule.ts'
import { normaliseAnswer } from './normalise.ts'

/** 1 when the answer equals a gold after {@link normaliseAnswer}: `em` of SQuAD, Search-R1 and most that followed. */
export function answerMatch(golds: readonly string[]): Rule {
  const wanted = normalised(golds)
  return (answer) => {
    const given = normaliseAnswer(answer)
    const equal = wanted.includes(given)
    return verdictOf(equal, equal ? `equals ${quote(given)}` : `${quote(given)} is none of ${listed(wanted)}`)
  }
}

/**
 * 1 when a gold is a part of the answer, both normalised (`subem_check` of Search-R1). A longer answer can only gain:
 * good for reading evidence, easily gamed as a reward.
 */
export function answerContains(golds: readonly string[]): Rule {
  const wanted = normalised(golds)
  return (answer) => {
    const given = normaliseAnswer(answer)
    const found = wanted.find((gold) => given.includes(gold))
    return found === undefined
      ? verdictOf(false, `${quote(given)} contains none of ${listed(wanted)}`)
      : verdictOf(true, `contains ${quote(found)}`)
  }
}

/**
 * The best F1 over the golds: words of the answer and of the gold, normalised, counted with repetition (`f1_score` of the
 * SQuAD script).
 */
export function answerF1(golds: readonly string[]): Rule {
  const wanted = normalised(golds)
  return (answer) => {
    const given = normaliseAnswer(answer)
    const [best] = wanted
      .map((gold) => ({ gold, value: f1(given.split(' '), gold.split(' ')) }))
      .toSorted((a, b) => b.value - a.value)
    if (best === undefined || given === '') return { value: 0, why: 'there is nothing to compare' }
    return { value: best.value, why: `nearest gold ${quote(best.gold)}` }
  }
}

function f1(given: readonly string[], gold: readonly string[]): number {
  const left = new Map<string, number>()
  for (const word of gold) left.set(word, (left.get(word) ?? 0) + 1)
  let shared = 0
  for (const word of given) {
    const count = left.get(word) ?? 0
    if (count === 0) continue
    left.set(word, count - 1)
    shared += 1
  }
  return (2 * shared) / (given.length + gold.length)
}

/** A gold of which nothing is left cannot be matched: it would be a part of everything. */
function normalised(golds: readonly string[]): readonly string[] {
  return golds.map(normaliseAnswer).filter((gold) => gold !== '')
}

function listed(golds: readonly string[]): string {
  return golds.map(quote).join(', ')
}
