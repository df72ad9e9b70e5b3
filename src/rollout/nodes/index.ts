export type {
  HandedRollout,
  HandInResult,
  NodeJob,
  NodeOrder,
  NodesAnswered,
  StopJob,
  ToldWeights,
} from './contract.ts'
export { FollowWeights } from './follow-weights.ts'
export { attemptOf, type ClaimedForNode, NodeJobs, type NodeRun, type NodesOfRun } from './node-jobs.ts'
export { noNodes, nobodyAnswered, nodeNameOf, type NodeSaid, type NodeWeights } from './node-weights.ts'
export { insideLink, insidePath, type TaskFile, type TaskFiles } from './task-files.ts'
