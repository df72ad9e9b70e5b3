/** `paddock-rl`: what a program that runs rollouts or reads what was recorded needs. */
import './least-node.ts'
export {
  type Config,
  type ConfigInput,
  defineConfig,
  loadConfig,
  type LoadConfigOptions,
  type LoadedConfig,
} from '../config/index.ts'
export {
  type Clock,
  type Digest,
  type ErrorCode,
  type ErrorFamily,
  type Event,
  type Id,
  isPaddockError,
  newId,
  PaddockError,
  type RolloutEnd,
  type Task,
  type Verdict,
} from '../core/index.ts'
export {
  type ExportRequest,
  type Manifest,
  openReader,
  openStore,
  runExport,
  type SelectionQuery,
  type Store,
  type StoreOptions,
  type StoreReader,
} from '../trajectory/index.ts'
export { createProxy, type Listener, type Proxy, type ProxyOptions } from '../proxy/index.ts'
export { type DaemonOptions, dockerProvider, type DockerProviderOptions } from '../sandbox/index.ts'
export { environmentRegistry } from '../builtin/index.ts'
export { type EnvironmentRegistry, validateTasks, type ValidateOptions } from '../envs/index.ts'
export {
  bareTask,
  type HarnessOptions,
  type HarnessRegistry,
  harnessRegistry,
  rescoreRollouts,
  type RescoreOptions,
  type RolloutSummary,
  type RunOptions,
  type RunProgress,
  runRollouts,
  type RunSummary,
} from '../rollout/index.ts'
