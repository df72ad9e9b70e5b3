export { exact } from './exact.ts'
export { jsonEqual, jsonSchema } from './json.ts'
export { math } from './math/index.ts'
export { numeric, parseNumber, type Tolerance } from './numeric.ts'
export { regex } from './regex.ts'
export { type Normalisation, type Rule, type RuleResult } from './rule.ts'
export { set, type SetOptions } from './set.ts'
export {
  compareTables,
  type CompareOptions,
  type Comparison,
  type DatabaseState,
  type Probe,
  probeDifferences,
  type ResultTable,
  rVes,
  type RVes,
  softF1,
  spiderRepaired,
  type SqlPreset,
  sqlPresetNames,
  sqlPresets,
  type SqlSemantics,
  type SqlValue,
  stateDifferences,
  type StateTable,
  withoutDistinct,
} from './sql/index.ts'
export {
  answerContains,
  answerF1,
  answerInEvidence,
  answerMatch,
  citationsGrounded,
  duplicateQueries,
  evidenceRecall,
  normaliseAnswer,
  overSearch,
  penalised,
} from './qa/index.ts'
