import type { Id } from '../../core/index.ts'
import type { EngineAdapter } from '../engines/contract.ts'
import type { Upstream } from '../upstream.ts'
import type { TokenStrategyDriver } from './contract.ts'
import { RecordedTree } from './recorded-tree.ts'

/**
 * Strategy `record`: the engine renders and samples, the ids of its answer are hung on the session's tree. A prompt
 * that extends an earlier path shares its segments; one that should have and did not is a fork with a cause.
 */
export function recordStrategy(sessionId: Id, upstream: Upstream, engine: EngineAdapter): TokenStrategyDriver {
  const tree = new RecordedTree(sessionId)
  return {
    strategyFor: () => 'record',
    send: ({ path, body, callId }, sink) =>
      upstream.send(path, body, { callId, sessionId }, engine.readsChat?.(sink) ?? sink),
    add: (call) => tree.add(call),
    takeUp: (call) => tree.takeUp(call),
  }
}
