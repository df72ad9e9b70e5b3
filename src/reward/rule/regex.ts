import { quote, type Rule, verdictOf } from './rule.ts'

/**
 * 1 when the pattern matches the answer (its first `maxLength` UTF-16 units, default 100,000). `whole`: the pattern
 * must match all of the answer but white space at its ends. The pattern is the task author's; an answer cannot
 * change it, but a pattern with nested quantifiers can be slow on a hostile answer, which is what the cut is for.
 */
export function regex(pattern: RegExp, o: { readonly whole?: boolean; readonly maxLength?: number } = {}): Rule {
  const flags = pattern.flags.replace(/[gy]/g, '')
  const tried = new RegExp(o.whole === true ? `^(?:${pattern.source})$` : pattern.source, flags)
  return (answer) => {
    const text = answer.slice(0, o.maxLength ?? 100_000)
    const found = tried.exec(o.whole === true ? text.trim() : text)
    return found === null
      ? verdictOf(false, `no match of ${pattern.toString()}`)
      : verdictOf(true, `${pattern.toString()} matches ${quote(found[0])}`)
  }
}
