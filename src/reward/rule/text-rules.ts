import { exact } from './exact.ts'
import { jsonSchema } from './json-schema.ts'
import { jsonEqual } from './json.ts'
import { math } from './math/index.ts'
import { numeric } from './numeric.ts'
import { answerContains, answerF1, answerMatch } from './qa/index.ts'
import { regex } from './regex.ts'
import { set } from './set.ts'

/** The rules that Paddock brings, by name: what a thread makes of a name and arguments. */
export const textRules = {
  exact,
  numeric,
  regex,
  set,
  jsonEqual,
  jsonSchema,
  math,
  answerMatch,
  answerContains,
  answerF1,
} as const

export type RuleName = keyof typeof textRules
