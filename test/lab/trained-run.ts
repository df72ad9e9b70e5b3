/** A run of many rollouts that a trainer was handed and spoke of often: in groups of eight, each with a settled round. */
import { type Id, newId } from '../../src/core/index.ts'
import type { Disposition, Store } from '../../src/trajectory/index.ts'

const members = 8
const spec = {
  n: members,
  over: 0,
  minUsable: 1,
  stopWhen: { kind: 'usable', count: members },
  carry: false,
  topUp: 0,
  deadlineMs: null,
  labels: {},
  horizon: null,
  onCut: { horizon: 'verify', budget: 'verify', context_overflow: 'verify', agent_timeout: 'verify' },
  fork: null,
} as const
const none = { members: 0, sampledTokens: 0 }

/** A trainer that goes on with a run. */
export interface Trainer {
  readonly incarnation: number
  /** Speaks of rows once more, each as its next use. */
  speak(rollouts: readonly Id[], step: number, use: number): Promise<void>
}

/**
 * Settles a round of each group of a run, hands a row of each rollout out and speaks of it `uses` times. Groups hold at most eight
 * rollouts, and no round of theirs was opened before.
 */
export async function trainRun(store: Store, runId: Id, { uses }: { readonly uses: number }): Promise<Trainer> {
  const { catalogue, trainer } = store
  const groups = Map.groupBy(await catalogue.rollouts({ runId }), ({ groupId }) => groupId)
  for (const [groupId, own] of groups) {
    await catalogue.openRound({ groupId, runId, round: 0, spec })
    await catalogue.settleRound({
      groupId,
      runId,
      round: 0,
      state: 'settled',
      stoppedBy: null,
      usable: own.length,
      censored: none,
      carried: none,
      neverBegan: 0,
      members: own.map(({ id, slot }) => ({
        rolloutId: id,
        slot,
        attempt: 0,
        end: 'completed',
        out: null,
        verdict: { id: newId(), status: 'scored', reward: 1 },
        cut: null,
        sampledTokens: 100,
      })),
    })
  }
  const { incarnation } = await trainer.attach(runId, { resumeStep: null, consumer: 'c' })
  await trainer.announce(runId, { incarnation, ordinal: 1, label: 'w1', step: null })
  const ids = Array.from(groups, () => newId())
  const claims = await trainer.claim(runId, {
    incarnation,
    consumer: 'c',
    maxGroups: ids.length,
    leaseMs: 3_600_000,
    ids,
  })
  const claimOf = new Map<Id, Id>()
  for (const { id, settled } of claims) {
    for (const { rolloutId } of settled.members) claimOf.set(rolloutId, id)
    const rows = settled.members.map(({ rolloutId }) => ({
      rowId: `${rolloutId}:row`,
      segmentIds: [],
      labels: ['w1'],
    }))
    await trainer.handOut(id, rows)
  }
  const speak = async (rollouts: readonly Id[], step: number, use: number): Promise<void> => {
    for (let from = 0; from < rollouts.length; from += 2000) {
      const dispositions = rollouts.slice(from, from + 2000).map((id) => ({
        claimId: claimOf.get(id) ?? '',
        row: `${id}:row`,
        step,
        use,
        outcome: (use % 2 === 0 ? 'used' : 'skipped') as Disposition['outcome'],
        tokens: null,
        advantage: 0.5,
        rewardUsed: 1,
        reason: null,
      }))
      await trainer.dispose(runId, { incarnation, dispositions })
    }
    await trainer.putMetrics(runId, { incarnation, step, values: { loss: 1 / (step + 1) }, mismatch: null })
  }
  const all = [...groups.values()].flat().map(({ id }) => id)
  for (let use = 0; use < uses; use += 1) await speak(all, use + 1, use)
  return { incarnation, speak }
}
