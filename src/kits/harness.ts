/** `paddock-rl/harness`: what a preset of an agent program is written with. */
import './least-node.ts'
export { PaddockError } from '../core/index.ts'
export { runToolCall, type Tool, type ToolOutcome } from '../envs/index.ts'
export {
  type BoxHarness,
  defineHarness,
  type FailurePattern,
  type Harness,
  type HarnessBundle,
  type HarnessExit,
  type HarnessFacts,
  type HarnessFault,
  type HarnessLaunch,
  type HarnessReport,
  type HostContext,
  type HostHarness,
  type LaunchContext,
  nodeCommand,
  npmBundle,
  type NpmBundleOptions,
  reportExit,
} from '../rollout/index.ts'
