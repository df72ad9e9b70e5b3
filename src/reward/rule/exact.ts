import { type Normalisation, normalise, quote, type TextRule, verdictOf } from './rule.ts'

export function exact(
  golds: string | readonly string[],
  steps: Normalisation = { trim: true, unicode: true },
): TextRule {
  const wanted = (typeof golds === 'string' ? [golds] : golds).map((gold) => normalise(gold, steps))
  return (answer) => {
    const given = normalise(answer, steps)
    return wanted.includes(given)
      ? verdictOf(true, `equals ${quote(given)}`)
      : verdictOf(false, `${quote(given)} is not ${wanted.map(quote).join(' or ')}`)
  }
}
