export type { HandedRollout, HandInResult, NodeJob, NodeOrder, StopJob } from './contract.ts'
export { attemptOf, NodeJobs, type NodeRun, type NodesOfRun } from './node-jobs.ts'
export { insideLink, insidePath, type TaskFile, type TaskFiles } from './task-files.ts'
