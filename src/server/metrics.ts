import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { ControlParts } from './contract.ts'

/** Prometheus metrics of one process; names are listed in `docs/reference/routes.md`. */
export function metrics(parts: Pick<ControlParts, 'proxy' | 'storeQueueDepth'>, liveReaders: () => number): Registry {
  const registry = new Registry()
  // Event-loop delay, memory, handles, garbage collection.
  collectDefaultMetrics({ register: registry, prefix: 'paddock_' })
  const gauge = (name: string, help: string, read: () => number): void => {
    const metric: Gauge = new Gauge({ name, help, registers: [registry], collect: () => metric.set(read()) })
  }
  const { proxy, storeQueueDepth } = parts
  gauge('paddock_sessions_open', 'Open sessions.', () => proxy.stats().sessions.open)
  gauge('paddock_calls_in_flight', 'Calls with the engine now.', () => proxy.stats().inFlight)
  gauge('paddock_calls_in_flight_limit', 'Most calls with the engine at once.', () => proxy.stats().maxInFlight)
  gauge('paddock_calls_queued', 'Calls waiting for the engine.', () => proxy.stats().queued)
  gauge('paddock_calls_queued_limit', 'Most calls that may wait.', () => proxy.stats().maxQueued)
  gauge('paddock_calls_total', 'Calls recorded since the start.', () => proxy.stats().calls)
  gauge('paddock_prompt_tokens_total', 'Prompt tokens seen by the engine.', () => proxy.stats().promptTokens)
  gauge('paddock_sampled_tokens_total', 'Tokens sampled by the engine.', () => proxy.stats().sampledTokens)
  gauge('paddock_upstream_connections', 'Connections to the engine.', () => proxy.stats().upstream.connections)
  gauge('paddock_upstream_pending', 'Requests waiting for a connection.', () => proxy.stats().upstream.pending)
  if (storeQueueDepth !== null) {
    gauge('paddock_store_queue_depth', 'Writes accepted and not yet durable.', storeQueueDepth)
  }
  gauge('paddock_live_readers', 'Readers of GET /events.', liveReaders)
  return registry
}
