export type {
  CallLine,
  CommittedAnswer,
  EngineSide,
  Listener,
  OpenedSession,
  OpenSession,
  PolicyFacts,
  Proxy,
  ProxyEvent,
  ProxyLimits,
  ProxyOptions,
  ProxyPolicy,
  ProxyStats,
  SessionHandler,
  SessionPast,
  SessionStats,
  WaitingRequest,
} from './contract.ts'
export { chatRequestOf, requestMessages, showsMedia } from './dialects/read-back.ts'
export type { Adapter } from './engines/adapters.ts'
export type { EngineOrder } from './engines/control.ts'
export type {
  FleetLimits,
  FleetStatus,
  PauseElsewhere,
  PauseMode,
  PauseOrder,
  PauseOutcome,
  ReplicaStatus,
  LiveWeights,
  WeightsElsewhere,
  WeightsOrder,
  WeightsOutcome,
} from './fleet/contract.ts'
export type { EngineAdapter, EngineRequestFacts, EngineRequestPlan } from './engines/contract.ts'
export { openaiEngine, type OpenaiOptions } from './engines/openai/index.ts'
export { type EngineProbe, probeEngine } from './engines/probe.ts'
export { llamacppEngine, type LlamacppOptions } from './engines/llamacpp/index.ts'
export { sglangEngine, type SglangOptions } from './engines/sglang/index.ts'
export { vllmEngine, type VllmOptions } from './engines/vllm/index.ts'
export { defaultLimits } from './limits.ts'
export { requireReplayable } from './past/replay.ts'
export type { Continuation, ProbeAnswer } from './probes/contract.ts'
export { createProxy } from './proxy.ts'
export { createScorer, type Scorer } from './scorer.ts'
export type { ScoreOrder, Scores } from './scoring.ts'
export { type Front, openFront } from './shards/front.ts'
export type { ProxyShard } from './shards/contract.ts'
