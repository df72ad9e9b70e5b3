export { WorkTally } from './work-tally.ts'
export type { ControlParts, RescoreThem, SubmittedRun } from './contract.ts'
export { type ResumeRequest, type RunRequest, runRequest } from './run-request.ts'
export { type ControlOptions, type ControlServer, type ControlTls, startControl } from './control.ts'
export { type LiveEvent, LiveFeed, type LiveKind, liveKinds } from './live.ts'
export { sessionPolicy } from './policy.ts'
export {
  beatAnswer,
  ByteGate,
  claimAnswer,
  claimVerificationsAnswer,
  digestHeader,
  filesAnswer,
  giveBackAnswer,
  handInAnswer,
  nodeLabel,
  type NodeEngines,
  nodeName,
  nodeProtocol,
  openAnswer,
  weightsAnswer,
} from './nodes/index.ts'
export { type Annotator, type SearchHit, searchStep, serveView, type Viewer, type ViewServer } from './view/index.ts'
