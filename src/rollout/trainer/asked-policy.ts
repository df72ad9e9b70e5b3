import { PaddockError } from '../../core/index.ts'
import { policiesOf, type RunRecord, trainedPolicies } from '../../trajectory/index.ts'

/**
 * The policy of a run that a request is of; null: the run has one, without a name. Where it trains one alone, that need not be named. Throws
 * `POLICY_UNKNOWN`, `POLICY_UNNAMED`.
 */
export function askedPolicy(run: RunRecord, asked: string | null): string | null {
  const trained = trainedPolicies(run)
  if (asked !== null) return knownPolicy(run, asked)
  if (trained.length > 1) {
    throw new PaddockError('POLICY_UNNAMED', `run ${run.id} trains ${trained.join(', ')}, and none of them is named`, {
      data: { known: trained },
    })
  }
  return trained[0] ?? null
}

/** Throws `POLICY_UNKNOWN` for one that the run does not train. */
export function knownPolicy(run: RunRecord, asked: string): string {
  const trained = trainedPolicies(run)
  if (trained.includes(asked)) return asked
  const all = policiesOf(run)
  const why =
    all.length === 0
      ? 'it has one policy, without a name'
      : `it trains ${trained.length === 0 ? 'none' : trained.join(', ')}`
  throw new PaddockError('POLICY_UNKNOWN', `run ${run.id} does not train the policy ${asked}: ${why}`, {
    data: { policy: asked, known: trained },
    ...(all.length === 0 ? { fix: 'Leave `policy` out.' } : {}),
  })
}
