export { NullLimits } from './group/null-limit.ts'
export type {
  GroupSummary,
  RepeatSummary,
  RolloutSummary,
  RunOptions,
  RunProgress,
  RunSummary,
  StageBudgets,
  WorkerLimits,
} from './contract.ts'
export type {
  BoxHarness,
  FailurePattern,
  Harness,
  HarnessBundle,
  HarnessExit,
  HarnessFacts,
  HarnessFault,
  HarnessLaunch,
  HarnessReport,
  HostContext,
  HostHarness,
  LaunchContext,
  PinnedVersion,
} from './harnesses/contract.ts'
export { defineHarness, reportExit } from './harnesses/define.ts'
export { bundledNode, nodeCommand, npmBundle, type NpmBundleOptions } from './harnesses/npm-bundle.ts'
export { claudeCode } from './harnesses/claude-code/index.ts'
export { cline } from './harnesses/cline/index.ts'
export { codex } from './harnesses/codex/index.ts'
export { geminiCli } from './harnesses/gemini-cli/index.ts'
export { opencode } from './harnesses/opencode/index.ts'
export { piHarness } from './harnesses/pi/index.ts'
export { qwenCode } from './harnesses/qwen-code/index.ts'
export { guiTextAgent, type GuiTextOptions } from './harnesses/gui-text/index.ts'
export { referenceAgent, type ReferenceOptions } from './harnesses/reference/index.ts'
export { type ConfiguredPresets, configuredPresets } from './harnesses/configured.ts'
export { type HarnessOptions, type HarnessRegistry, harnessRegistry, pinnableHarnesses } from './harnesses/registry.ts'
export { scriptHarness } from './harnesses/script/index.ts'
export { shellHarness, type ShellOptions } from './harnesses/shell/index.ts'
export { reExSql, skyRlSql, tagAgent, type TagProtocol } from './harnesses/tags/index.ts'
export { bareTask } from './bare-task.ts'
export { recordBoxEvents } from './box-events.ts'
export { sandboxGateway } from './sandbox-gateway.ts'
export { giveLabel, type LateLabel } from './late-label.ts'
export { libraryLeftBy } from './library/index.ts'
export { appendLate, type LateVerdict } from './late-verdict.ts'
export { endInterrupted } from './interrupted.ts'
export { defaultLimits, runBudgets, stageMs } from './budgets.ts'
export { callNamed } from './fork/past.ts'
export { openRun, runRollouts } from './run.ts'
export { verifyLeft } from './left.ts'
export { isUnverified, type UnverifiedRollout } from './work.ts'
export {
  type AskedRewrite,
  type Rewrite,
  type RewriteOptions,
  type RewriteReport,
  Rewrites,
  rewriteRollouts,
  rewriteSchema,
} from './rewrite/index.ts'
export { type FindRoleEngine, type RoleEngine } from './role-engine.ts'
export { type Rescored, type RescoreOptions, type RescoreOutcome, rescoreRollouts } from './rescore/index.ts'
export { type AtWeightUpdate, EngineOverUpdates, type OverNodes, type Shelved, Shelving } from './shelving/index.ts'
export { followEngine, type PolicyPause, policyPause } from './policy-pause.ts'
export {
  endRecordings,
  mayGoOn,
  openRecording,
  type Recording,
  type RecordingOptions,
  Recordings,
} from './recording.ts'
export {
  FollowWeights,
  type HandInResult,
  insideLink,
  insidePath,
  type NodeJob,
  NodeJobs,
  noNodes,
  type NodesAnswered,
  type NodeSaid,
  type TaskFiles,
  type ToldWeights,
} from './nodes/index.ts'
export {
  type AskedWork,
  digestOf,
  type NodeVerification,
  type Verification,
  Verifications,
  type Verified,
  VerifyJobs,
  verifyByJobs,
  type VerifyElsewhere,
  verifyOrder,
  type VerifyOrder,
} from './verification/index.ts'
export { openRunAtNode, rolloutOfJob, type RunAtNode } from './run-at-node.ts'
export { type GroupRequest, groupSpec } from './group/spec.ts'
export {
  type EndOutside,
  isOutside,
  type OpenGroup,
  type OpenOutside,
  OutsideGroups,
  type OutsideRollout,
} from './group/outside.ts'
export { type EvalMember, type EvalState, type EvalTask, Evals } from './trainer/evals.ts'
export { HandOuts } from './trainer/hand-outs.ts'
export { type FoundRun, OwnRuns } from './trainer/own-runs.ts'
export { TrainerGroups } from './trainer/trainer-groups.ts'
export { type AlikeEngines, TrainerEngines } from './trainer/trainer-engines.ts'
export { RoundScores } from './trainer/round-scores.ts'
export { Probes } from './trainer/probes.ts'
export type { TextVerifier } from './trainer/text-verifier.ts'
export { candidatesOf, type FindSelector } from './trainer/feed.ts'
export { drawnOf, Feeds } from './trainer/feeds.ts'
export { PolicyUpdates, requireOwnEngine } from './trainer/policy-updates.ts'
export { TurnEvents } from './trainer/turn-events.ts'
export { type TrainerRun, trainerRunOf } from './trainer/run-config.ts'
export { untilChange } from './trainer/until-change.ts'
export { neutralSampling, type TrainerRunState, TrainerRuns } from './trainer/trainer-runs.ts'
