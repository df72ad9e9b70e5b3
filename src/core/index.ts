export { type Clock, systemClock } from './clock.ts'
export { makeFolder } from './make-folder.ts'
export { InFlightSet } from './in-flight-set.ts'
export { sha256 } from './digest.ts'
export { catalogue, type ErrorCode, type ErrorFamily } from './error-catalogue.ts'
export { type ErrorData, isPaddockError, PaddockError } from './errors.ts'
export type { Event, EventBody } from './event.ts'
export { type Digest, type Id, type IdMaker, idMaker, isId, newId } from './ids.ts'
export {
  canonicalOrRaw,
  canonicalText,
  cutMembers,
  decodeString,
  duplicateKeys,
  editObject,
  type JsonMember,
  type LosslessJson,
  type LosslessMember,
  maxNesting,
  nestingDepth,
  type ObjectEdit,
  parseLossless,
  scanElements,
  scanMembers,
  ShortTexts,
  skipSpace,
  skipString,
  skipValue,
  stringifyLossless,
} from './json/index.ts'
export { type BesideClass, type CallClass, isBeside, isWork, type Lineage } from './lineage.ts'
export { type Log, type LogLevel, logLevels, type LogOptions, openLog, silentLog, withoutSecrets } from './log/index.ts'
export type { EngineFingerprint, LogprobKind, Policy, PolicySpan, SamplingParams } from './policy.ts'
export { isLoopback, originOf } from './origin.ts'
export { requireOwnPage } from './own-page.ts'
export { present } from './present.ts'
export { isOwnerAlive, thisOwner } from './process-owner.ts'
export { type GeneratedPlace, generatedPlace, placeText } from './generated-place.ts'
export { makeTask, type RolloutEnd, type Stage, type Task } from './task.ts'
export { KeyedTurns, Turns } from './turns.ts'
export {
  attribute,
  closeRolloutContext,
  openRolloutContext,
  openTelemetry,
  rolloutContext,
  spanName,
  tracer,
} from './telemetry/index.ts'
export type { ToolCall, Turn, TurnPart } from './turn.ts'
export {
  type Doubtful,
  doubtful,
  isDoubtful,
  type StoredArtifact,
  type Trust,
  trusts,
  type Verdict,
  type VerdictBy,
  type VerdictFacts,
  type VerdictDraft,
  verdictRanks,
  type VerdictStatus,
} from './verdict.ts'
export { resolvePackage } from './resolve-package.ts'
