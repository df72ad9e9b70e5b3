export type { ControlParts, RunRequest, SubmittedRun } from './contract.ts'
export { type ControlOptions, type ControlServer, startControl } from './control.ts'
export { type LiveEvent, LiveFeed, type LiveKind, liveKinds } from './live.ts'
export { announceOwner, findOwner, type OwnerAddress, ownerFileName, withdrawOwner } from './owner.ts'
export { sessionPolicy } from './policy.ts'
export { controlToken, tokenFileName } from './token.ts'
export {
  callView,
  rolloutView,
  sessionLogView,
  sessionView,
  type TokenCounts,
  tokenCounts,
  verdictInForce,
} from './views.ts'
