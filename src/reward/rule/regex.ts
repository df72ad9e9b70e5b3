import { quote, type TextRule, tooLong, verdictOf } from './rule.ts'

/** How a pattern looks at an answer. */
export interface RegexOptions {
  /** The pattern must match all of the answer but white space at its ends. Default false: any part of it. */
  readonly whole?: boolean
  /** Longest answer that can match, in UTF-16 units. Default 100,000. */
  readonly maxLength?: number
}

/** 1 when the pattern matches. `whole` is the whole text with any flags; `g` and `y` do not count. */
export function regex(pattern: RegExp, o: RegexOptions = {}): TextRule {
  const { whole = false, maxLength = 100_000 } = o
  const tried = new RegExp(whole ? anchored(pattern) : pattern.source, pattern.flags.replace(/[gy]/g, ''))
  return (answer) => {
    const text = whole ? answer.trim() : answer
    if (text.length > maxLength) return tooLong(text, maxLength)
    const found = tried.exec(text)
    return found === null
      ? verdictOf(false, `no match of ${pattern.toString()}`)
      : verdictOf(true, `${pattern.toString()} matches ${quote(found[0])}`)
  }
}

/** From the start of the text to its end. `^` and `$` are those of any line with the flag `m`. */
function anchored({ source }: RegExp): string {
  return `(?<![^])(?:${source})(?![^])`
}
