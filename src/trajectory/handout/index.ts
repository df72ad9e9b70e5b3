export type { HandedRound, HandedRowWhole, HandedScores, RowMode, ScoringRole } from './contract.ts'
export { encodeRows, roundJson } from './encode.ts'
export { type DraftRound, draftRound, handedRound, type HandoutRules, rowsToOwn, type SpanReading } from './round.ts'
export { filteredRound } from './filter.ts'
