/** `paddock-rl/engine`: the contract of an engine adapter, and the adapters that are there. Unstable: it may change in any version. */
import './least-node.ts'
export type { EngineFingerprint, LogprobKind, SamplingParams } from '../core/index.ts'
export {
  type EngineAdapter,
  type EngineProbe,
  type EngineRequestFacts,
  type EngineRequestPlan,
  llamacppEngine,
  type LlamacppOptions,
  openaiEngine,
  type OpenaiOptions,
  probeEngine,
  sglangEngine,
  type SglangOptions,
  vllmEngine,
  type VllmOptions,
} from '../proxy/index.ts'
