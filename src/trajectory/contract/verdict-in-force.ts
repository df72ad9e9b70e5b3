import { type Verdict, verdictRanks } from '../../core/index.ts'

/**
 * The verdict that counts, null without any: of the highest rank that spoke (`by`), the last one that no other of that rank
 * supersedes. A verifier that runs again stands on record and does not replace what somebody said late.
 */
export function verdictInForce(verdicts: readonly Verdict[]): Verdict | null {
  const highest = verdictRanks.findLast((by) => verdicts.some((verdict) => verdict.by === by))
  return highest === undefined ? null : lastOf(verdicts.filter(({ by }) => by === highest))
}

/** A verdict as it is of what one policy sampled; null: of all of them. */
export function verdictOfPolicy(verdict: Verdict | null, policy: string | null): Verdict | null {
  if (verdict === null || verdict.reward === null || policy === null) return verdict
  return { ...verdict, reward: rewardOfPolicy(verdict, policy) }
}

/** The number of what one policy sampled; null: of all of them. */
export function rewardOfPolicy<R extends number | null>(
  { reward, byPolicy }: { readonly reward: R; readonly byPolicy?: Readonly<Record<string, number>> | undefined },
  policy: string | null,
): R | number {
  if (reward === null || policy === null || byPolicy === undefined || !Object.hasOwn(byPolicy, policy)) return reward
  return byPolicy[policy] ?? reward
}

/** The verdict that counts among those of verifiers: what `rescore` compares with and supersedes. */
export function verifiersVerdict(verdicts: readonly Verdict[]): Verdict | null {
  return lastOf(verdicts.filter(({ by }) => by === 'verifier'))
}

function lastOf(verdicts: readonly Verdict[]): Verdict | null {
  const superseded = new Set(verdicts.map((verdict) => verdict.supersedes))
  return verdicts.findLast((verdict) => !superseded.has(verdict.id)) ?? null
}
