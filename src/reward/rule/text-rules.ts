import { exact } from './exact.ts'
import { jsonSchema } from './json-schema.ts'
import { jsonEqual } from './json.ts'
import { math } from './math/index.ts'
import { numeric } from './numeric.ts'
import { answerContains, answerF1, answerMatch } from './qa/index.ts'
import { regex } from './regex.ts'
import { type RuleResult, verdictOf } from './rule.ts'
import { set } from './set.ts'
import {
  compareTables,
  type CompareOptions,
  type Probe,
  probeDifferences,
  type DatabaseState,
  type ResultTable,
  stateDifferences,
  type StateOptions,
} from './sql/index.ts'

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

/** A database after a script: what it holds, and what probes did on it. */
export interface ChangedDatabase {
  readonly state: DatabaseState
  readonly probes: readonly Probe[]
}

/** Comparisons of more than a text. */
export const dataRules = {
  tables:
    (gold: ResultTable, o: CompareOptions) =>
    (answer: ResultTable): RuleResult => {
      const { equal, why } = compareTables(gold, answer, o)
      return verdictOf(equal, why)
    },
  databases:
    (gold: ChangedDatabase, o: StateOptions) =>
    (answer: ChangedDatabase): RuleResult => {
      const states = stateDifferences(gold.state, answer.state, o)
      const lines = [...states, ...probeDifferences(gold.probes, answer.probes, o)]
      return verdictOf(lines.length === 0, lines.length === 0 ? 'equal state' : lines.join('; '))
    },
} as const
