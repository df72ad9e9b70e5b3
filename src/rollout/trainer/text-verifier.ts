import { PaddockError } from '../../core/index.ts'
import { answerContains, exact, numeric, regex, type Rule } from '../../reward/index.ts'

/** What is said of the text of a continuation: a rule by its name, and what it compares with. */
export type TextVerifier =
  | { readonly rule: 'exact' | 'contains'; readonly gold: readonly string[] }
  | { readonly rule: 'regex'; readonly pattern: string; readonly flags: string; readonly whole: boolean }
  | { readonly rule: 'number'; readonly gold: number; readonly absolute: number; readonly relative: number }

/** Throws `BODY_INVALID_SHAPE` for a pattern that is none. */
export function ruleOf(verifier: TextVerifier): Rule {
  switch (verifier.rule) {
    case 'exact':
      return exact(verifier.gold)
    case 'contains':
      return answerContains(verifier.gold)
    case 'number':
      return numeric(verifier.gold, { absolute: verifier.absolute, relative: verifier.relative })
    case 'regex':
      return regex(patternOf(verifier), { whole: verifier.whole })
  }
}

function patternOf({ pattern, flags }: { readonly pattern: string; readonly flags: string }): RegExp {
  try {
    return new RegExp(pattern, flags)
  } catch (cause) {
    throw new PaddockError('BODY_INVALID_SHAPE', `body.verifier.pattern: ${String(cause)}`, { cause })
  }
}
