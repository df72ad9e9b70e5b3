import { quote, type Rule, verdictOf } from '../rule.ts'
import { comparableGolds, type Gold, normaliseAnswer } from './normalise.ts'

/** 1 when the answer equals a gold after {@link normaliseAnswer}: `em` of SQuAD, Search-R1 and most that followed. */
export function answerMatch(golds: readonly string[]): Rule {
  const wanted = comparableGolds(golds)
  return (answer) => {
    const met = wanted.find(({ text, of }) => of(answer) === text)
    return met === undefined
      ? verdictOf(false, `${quote(normaliseAnswer(answer))} is none of ${listed(wanted)}`)
      : verdictOf(true, `equals ${quote(met.text)}`)
  }
}

/**
 * 1 when a gold is a part of the answer, both normalised (`subem_check` of Search-R1). A longer answer can only gain:
 * good for reading evidence, easily gamed as a reward. A gold that is only an article must be the whole answer.
 */
export function answerContains(golds: readonly string[]): Rule {
  const wanted = comparableGolds(golds)
  return (answer) => {
    const found = wanted.find(({ text, of }) =>
      of === normaliseAnswer ? of(answer).includes(text) : of(answer) === text,
    )
    return found === undefined
      ? verdictOf(false, `${quote(normaliseAnswer(answer))} contains none of ${listed(wanted)}`)
      : verdictOf(true, `contains ${quote(found.text)}`)
  }
}

/** Answers that are right or wrong as a whole. */
const whole: ReadonlySet<string> = new Set(['yes', 'no', 'noanswer'])

/**
 * The best F1 over the golds: words of the answer and of the gold, normalised, counted with repetition (`f1_score` of the
 * SQuAD script). `yes`, `no` and `noanswer`, as answer or as gold, meet themselves only, as in HotpotQA's
 * (`hotpot_evaluate_v1.py`): "yes no" is worth nothing.
 */
export function answerF1(golds: readonly string[]): Rule {
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
  return golds.map(({ text }) => quote(text)).join(', ')
}
