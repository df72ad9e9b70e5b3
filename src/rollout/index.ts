export type {
  GroupSummary,
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
  HarnessLaunch,
  HarnessReport,
  HostContext,
  HostHarness,
  LaunchContext,
} from './harnesses/contract.ts'
export { defineHarness, reportExit } from './harnesses/define.ts'
