export { type JsonGoldOptions } from './json.ts'
export { parseNumber, type Tolerance } from './numeric.ts'
export { type RegexOptions } from './regex.ts'
export { type Normalisation, type Rule, type RuleResult } from './rule.ts'
export {
  answerContains,
  answerF1,
  answerMatch,
  compareDatabases,
  compareTables,
  exact,
  jsonEqual,
  jsonSchema,
  math,
  mathVerify,
  numeric,
  regex,
  set,
} from './rules.ts'
export { type SetOptions } from './set.ts'
export {
  type CompareOptions,
  type Comparison,
  type DatabaseState,
  type Probe,
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
  type StateTable,
  withoutDistinct,
} from './sql/index.ts'
export {
  answerInEvidence,
  citationsGrounded,
  duplicateQueries,
  evidenceRecall,
  normaliseAnswer,
  overSearch,
  penalised,
} from './qa/index.ts'
