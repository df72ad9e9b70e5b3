/** `paddock-rl/testing`: the suites that every plugin must pass, for a vitest file. They need `vitest` and `fast-check`. */
import './least-node.ts'
export {
  engineContract,
  type EngineContractOptions,
  type EngineFixture,
  type EngineUnderTest,
  openaiPlain,
  serveFixture,
  vllm032,
} from '../testing/engine/index.ts'
export { environmentContract, type EnvironmentContractOptions } from '../testing/environment/index.ts'
export {
  type DecodedConversation,
  type DecodedRow,
  exporterContract,
  type ExporterContractOptions,
} from '../testing/exporter/index.ts'
export { requireDocker, sandboxContract, type SandboxContractOptions } from '../testing/sandbox/index.ts'
export { harnessContract, type HarnessContractOptions } from '../testing/harness.ts'
export { ruleContract, type RuleContractOptions } from '../testing/rule.ts'
