import type { Upstream } from '../upstream.ts'
import type { TokenStrategyDriver } from './contract.ts'

/** What a call asks of a token strategy. */
export type CallTokenDriver = Pick<TokenStrategyDriver, 'strategyFor' | 'send' | 'add'>

/** For calls beside the conversation: the engine is asked as the client asked, and no token is hung on any tree. */
export function besideTokens(upstream: Upstream): CallTokenDriver {
  return {
    strategyFor: () => 'record',
    send: ({ path, body, callId, sessionId }, sink) => upstream.send(path, body, { callId, sessionId }, sink),
    add: () => ({ segments: [], spans: [], promptLeaf: null, forks: [], findings: [] }),
  }
}
