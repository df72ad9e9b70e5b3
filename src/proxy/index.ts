export type {
  CallLine,
  Listener,
  OpenedSession,
  OpenSession,
  Proxy,
  ProxyEvent,
  ProxyLimits,
  ProxyOptions,
  ProxyStats,
  SessionHandler,
  SessionStats,
} from './contract.ts'
export type { EngineAdapter, EngineRequestFacts, EngineRequestPlan } from './engines/contract.ts'
