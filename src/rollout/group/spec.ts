import { PaddockError } from '../../core/index.ts'
import type { GroupSpec } from '../../trajectory/index.ts'

/** What may be said of a group; the rest is filled in by {@link groupSpec}. */
export type GroupRequest = Partial<Omit<GroupSpec, 'n' | 'onCut'>> & {
  readonly n: number
  readonly onCut?: Partial<GroupSpec['onCut']>
}

/** A year: what is longer is a mistake of units. */
const longestDeadlineMs = 365 * 86_400_000

/**
 * A whole specification. With `over` and no `stopWhen` the group stops at `n` usable members: what is started beyond `n`
 * is there for that. Throws `GROUP_INVALID` for what could never be met.
 */
export function groupSpec(asked: GroupRequest): GroupSpec {
  const { n, over = 0, minUsable = 1, topUp = 0, deadlineMs = null, carry = false } = asked
  const stopWhen = asked.stopWhen ?? (over > 0 ? { kind: 'usable', count: n } : { kind: 'deadline' })
  const most = n + over + topUp
  if (minUsable > most) throw invalid(`minUsable is ${minUsable}, and there are ${most} members at most`)
  if (stopWhen.kind === 'usable' && stopWhen.count > most) {
    throw invalid(`stopWhen waits for ${stopWhen.count} usable members, and there are ${most} at most`)
  }
  if (deadlineMs !== null && deadlineMs > longestDeadlineMs) {
    throw invalid('its deadline is more than 365 days away. Leave it out for none')
  }
  if (carry && stopWhen.kind === 'deadline' && deadlineMs === null) {
    throw invalid('carry lets members go on when the round stops, and nothing stops it')
  }
  return {
    n,
    over,
    minUsable,
    stopWhen,
    carry,
    topUp,
    deadlineMs,
    labels: asked.labels ?? {},
    horizon: asked.horizon ?? null,
    fork: asked.fork ?? null,
    ...(asked.inject === undefined ? {} : { inject: asked.inject }),
    ...(asked.library === undefined ? {} : { library: asked.library }),
    onCut: { horizon: 'verify', budget: 'verify', context_overflow: 'verify', agent_timeout: 'verify', ...asked.onCut },
  }
}

/** Of each rollout: what its group's policy sees beside the harness's words. */
export function injectLabels({ inject = [] }: Pick<GroupSpec, 'inject'>): Readonly<Record<string, string>> {
  return inject.length === 0 ? {} : { inject: inject.map(({ label }) => label).join(',') }
}

function invalid(what: string): PaddockError {
  return new PaddockError('GROUP_INVALID', `The group cannot be: ${what}.`)
}
