import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { FleetStatus, ReplicaStatus } from '../proxy/index.ts'
import type { ArchiveState } from '../trajectory/index.ts'
import type { ControlParts } from './contract.ts'

/** Prometheus metrics of one process; names are listed in `docs/reference/routes.md`. */
export function metrics(
  parts: Pick<ControlParts, 'proxy' | 'storeQueueDepth' | 'blobsState' | 'archiveState' | 'tally' | 'nodes'>,
  liveReaders: () => number,
): Registry {
  const registry = new Registry()
  // Event-loop delay, memory, handles, garbage collection.
  collectDefaultMetrics({ register: registry, prefix: 'paddock_' })
  // Gauges that are called like counters; each stands under its own name by type as well.
  for (const what of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`paddock_nodejs_active_${what}_total`)
  /** What only grows is a counter, and is called so (`_total`). */
  const measure = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    read: () => Iterable<readonly [Readonly<Partial<Record<L, string>>>, number]>,
  ): void => {
    const about = { name, help, labelNames, registers: [registry] }
    if (name.endsWith('_total')) {
      const counter: Counter<L> = new Counter({
        ...about,
        collect: () => {
          counter.reset()
          for (const [labels, value] of read()) counter.inc(labels, value)
        },
      })
      return
    }
    const gauge: Gauge<L> = new Gauge({
      ...about,
      collect: () => {
        gauge.reset()
        for (const [labels, value] of read()) gauge.set(labels, value)
      },
    })
  }
  const gauge = (name: string, help: string, read: () => number): void => measure(name, help, [], () => [[{}, read()]])
  const { proxy, storeQueueDepth, blobsState, archiveState, tally, nodes } = parts
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
  gauge('paddock_engine_paused', '1 while generation is paused.', () => (proxy.engineStatus().paused === null ? 0 : 1))
  gauge('paddock_engine_waiting', 'Calls that wait for the end of a pause.', () => proxy.engineStatus().waiting)
  gauge(
    'paddock_engine_weight_updates_total',
    'Weight updates through the control API.',
    () => proxy.engineStatus().weightUpdates,
  )
  gauge(
    'paddock_engine_resubmitted_total',
    'Generations ended for new weights and gone on with.',
    () => proxy.engineStatus().resubmitted,
  )
  const perReplica = (name: string, help: string, read: (replica: ReplicaStatus) => number): void =>
    measure(name, help, ['replica'], () =>
      proxy.engineStatus().replicas.map((replica) => [{ replica: replica.url }, read(replica)] as const),
    )
  perReplica('paddock_replica_serving', '1 where the replica takes calls.', ({ state }) =>
    state === 'serving' ? 1 : 0,
  )
  perReplica('paddock_replica_in_flight', 'Generations that run on the replica.', ({ inFlight }) => inFlight)
  perReplica('paddock_replica_sessions', 'Sessions whose KV cache is expected there.', ({ sessions }) => sessions)
  perReplica('paddock_replica_requests_total', 'Requests sent to the replica.', ({ requests }) => requests)
  perReplica('paddock_replica_failures_total', 'Requests and looks that failed.', ({ failures }) => failures)
  perReplica('paddock_replica_retries_total', 'Requests sent again, before a first byte.', ({ retries }) => retries)
  perReplica('paddock_replica_ejections_total', 'Times that the replica was taken out.', ({ ejections }) => ejections)
  const perLabel = (name: string, help: string, label: string, read: () => ReadonlyMap<string, number>): void =>
    measure(name, help, [label], () => [...read()].map(([value, count]) => [{ [label]: value }, count] as const))
  if (proxy.policies.length > 0) {
    const perPolicy = (read: (status: FleetStatus) => number) => (): ReadonlyMap<string, number> =>
      new Map(proxy.policies.map(({ name }) => [name, read(proxy.engineOf(name).engineStatus())] as const))
    const paused = perPolicy(({ paused }) => (paused === null ? 0 : 1))
    const updates = perPolicy(({ weightUpdates }) => weightUpdates)
    perLabel('paddock_policy_paused', '1 while the generations of a policy wait.', 'policy', paused)
    perLabel('paddock_policy_weight_updates_total', 'Weights that a policy got.', 'policy', updates)
    perLabel('paddock_policy_sampled_tokens_total', 'Tokens that a policy sampled.', 'policy', () => tally.policyTokens)
  }
  perLabel('paddock_drift_forks_total', 'Prompts that did not extend an earlier answer.', 'cause', () => tally.forks)
  perLabel(
    'paddock_drift_tokens_total',
    'Sampled tokens of earlier paths behind those differences.',
    'cause',
    () => tally.forkedTokens,
  )
  perLabel('paddock_call_strategies_total', 'Calls by how their ids were captured.', 'strategy', () => tally.strategies)
  perLabel('paddock_call_classes_total', 'Calls by what they are to their rollout.', 'class', () => tally.classes)
  perLabel('paddock_call_outcomes_total', 'Calls by how they ended.', 'outcome', () => tally.outcomes)
  perLabel('paddock_call_findings_total', 'Integrity findings on calls.', 'finding', () => tally.findings)
  perLabel('paddock_deliveries_total', 'Answers that left whole, or came back.', 'delivery', () => tally.deliveries)
  perLabel(
    'paddock_taints_total',
    'Calls that ended without an answer, through no fault of the agent.',
    'cause',
    () => tally.taints,
  )
  gauge('paddock_rollouts_running', 'Rollouts that have begun and not ended.', () => tally.running)
  perLabel('paddock_rollout_ends_total', 'Rollouts by how they ended.', 'end', () => tally.ends)
  perLabel('paddock_verdicts_total', 'Rollouts by the status of their first verdict.', 'status', () => tally.verdicts)
  gauge('paddock_empty_tools_total', 'Rollouts of runs whose tools kept saying nothing.', () => tally.emptyTools)
  perLabel('paddock_null_rewards_total', 'Rollouts of runs without a reward that counts.', 'cause', () => tally.nulls)
  perLabel(
    'paddock_node_hand_ins_total',
    'Rollouts that nodes handed in, by what came of it.',
    'result',
    () => new Map(Object.entries(nodes.jobs.handIns)),
  )
  gauge('paddock_node_hand_ins_waiting', 'Hand-ins that wait, unread, for room in memory.', () => nodes.handIns.waiting)
  if (storeQueueDepth !== null) {
    gauge('paddock_store_queue_depth', 'Writes accepted and not yet durable.', storeQueueDepth)
  }
  if (blobsState !== null) {
    gauge('paddock_blobs_waiting', 'Blobs that wait for their store.', () => blobsState().waiting)
    gauge('paddock_blobs_waiting_bytes', 'Bytes of these.', () => blobsState().waitingBytes)
    gauge('paddock_blob_failures_total', 'Uploads of blobs that failed.', () => blobsState().failures)
  }
  if (archiveState() !== null) {
    const state = (): ArchiveState => archiveState() ?? { waiting: 0, damaged: 0, failures: 0, away: null }
    gauge('paddock_archive_waiting', 'Finished sessions that wait for their archive.', () => state().waiting)
    gauge('paddock_archive_failures_total', 'Tries to archive sessions that failed.', () => state().failures)
  }
  gauge('paddock_live_readers', 'Readers of GET /events.', liveReaders)
  return registry
}
