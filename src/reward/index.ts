export { compose, type Composed, type Composition } from './compose.ts'
export { type DraftFacts, evidenceLimit, hacked, scored, unscored, type VerdictDraft } from './draft.ts'
export {
  exact,
  jsonEqual,
  jsonSchema,
  type Normalisation,
  numeric,
  parseNumber,
  regex,
  type Rule,
  type RuleResult,
  set,
  type SetOptions,
  type Tolerance,
} from './rule/index.ts'
export {
  type CheckOutcome,
  type CheckSpec,
  directoryDigest,
  readRewardFiles,
  type RewardReading,
  runCheck,
} from './verify/index.ts'
