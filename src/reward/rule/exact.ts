import { type Normalisation, normalise, quote, type Rule, verdictOf } from './rule.ts'

/** 1 when the answer equals one of the golds after normalisation (default: trimmed, NFC). */
export function exact(golds: string | readonly string[], steps: Normalisation = { trim: true, unicode: true }): Rule {
  const wanted = (typeof golds === 'string' ? [golds] : golds).map((gold) => normalise(gold, steps))
  return (answer) => {
    const given = normalise(answer, steps)
    return wanted.includes(given)
      ? verdictOf(true, `equals ${quote(given)}`)
      : verdictOf(false, `${quote(given)} is none of ${wanted.map(quote).join(', ')}`)
  }
}
