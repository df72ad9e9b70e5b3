/**
 * What the simulation takes for given, in seconds, bytes and counts. CPU times are of one core of the machine of bench/RESULTS.md (2 cores,
 * AMD EPYC); each stands with where it was measured.
 */
export interface Costs {
  /** CPU of the coordinator's process and of PostgreSQL. */
  readonly claim: Cost
  readonly beat: Cost
  /** All that a rollout of one short call costs, from its claim to its settled group. */
  readonly rollout: Cost
  /** More for each MB of a hand-in. */
  readonly perMb: Cost
}

export interface Cost {
  readonly coordinator: number
  readonly postgres: number
}

export const measured: Costs = {
  // `node bench/scale.ts --measure`, 2026-11-26, one run at work whose jobs are all claimed.
  claim: { coordinator: 0.0038, postgres: 0.003 },
  // The same, of a node that has 100 jobs.
  beat: { coordinator: 0.0017, postgres: 0.0012 },
  // `node bench/nodes.ts --rounds 8`, 2026-11-26: 64.8 and 20.6 s per 1,000 at 48 rollouts, 41.6 and 15.4 at 96. What a run costs once (2.2 s
  // and 0.5 s) is in both, so a rollout more costs the difference.
  rollout: { coordinator: 0.0184, postgres: 0.0102 },
  // `node bench/scale.ts --measure`, the same day: a rollout of 60 turns and 37,500 tokens beside one of a single turn.
  perMb: { coordinator: 0.132, postgres: 0 },
}

/** As the code has it: src/cli/node/client.ts, src/rollout/nodes/{waiting-claims,node-jobs}.ts, `nodes.leaseMs`. */
export const habits = {
  /** So long a claim that found nothing waits at the coordinator before it is asked anew. */
  claimWaitSeconds: 30,
  leaseSeconds: 60,
  /** Beats come six times in a lease, sweeps four times. */
  beatsPerLease: 6,
  sweepsPerLease: 4,
}

/** MB of a hand-in of 60 turns and 37,500 tokens (`--measure`). */
export const longHandInMb = 1.43
