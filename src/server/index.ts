export {
  createToken,
  listTokens,
  machineToken,
  offeredRoles,
  revokeToken,
  type Role,
  roles,
  tokenState,
} from './access/index.ts'
export { WorkTally } from './work-tally.ts'
export type { ControlParts, SubmittedRun } from './contract.ts'
export { type RunRequest, runRequest } from './run-request.ts'
export { type ControlOptions, type ControlServer, startControl } from './control.ts'
export { type LiveEvent, LiveFeed, type LiveKind, liveKinds } from './live.ts'
export { findOwner, type OwnerAddress, ownerGone } from './owner.ts'
export { present, sessionPolicy } from './policy.ts'
export { controlToken, tokenFileName } from './token.ts'
export { betweenHelp, betweenOf, memoryQueryOf, splitKeys, taskPageView } from './task-query.ts'
export { callView, rolloutView, sessionLogView, sessionView, type TokenCounts, tokenCounts } from './views.ts'
export { commonPrefix, type ReadMessage, readMessage } from './read/messages.ts'
export { rowsOf, type SegmentMask, segmentMasks } from './read/rows.ts'
export { knownTokenTexts, tokenizerKey, type TokenTexts } from './read/token-texts.ts'
export { type Annotator, type SearchHit, searchStep, serveView, type Viewer, type ViewServer } from './view/index.ts'
