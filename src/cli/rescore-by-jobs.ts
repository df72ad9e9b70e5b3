import { type Id, PaddockError } from '../core/index.ts'
import type { Environment } from '../envs/index.ts'
import { type Rescored, type RescoreOptions, rescoreRollouts } from '../rollout/index.ts'
import type { RescoreThem } from '../server/index.ts'

/**
 * `paddock rescore` at the process that owns the data directory: each rollout is a verification that it or a node takes. Throws
 * `NOT_FOUND` for a rollout that is not there, `ENVIRONMENT_*`.
 */
export async function rescoreByJobs(
  ids: readonly Id[],
  o: Pick<RescoreOptions, 'store' | 'elsewhere'> & {
    readonly findEnvironment: (name: string) => Promise<Environment>
    /** A verdict was appended. */
    readonly onVerdict: (rolloutId: Id) => Promise<void>
  },
): Promise<RescoreThem> {
  const { store, elsewhere = null, findEnvironment, onVerdict } = o
  const rollouts = await store.catalogue.rollouts({ ids })
  const found = new Set(rollouts.map(({ id }) => id))
  const missing = ids.find((id) => !found.has(id))
  if (missing !== undefined) throw new PaddockError('NOT_FOUND', `there is no rollout ${missing}`)
  const environments = new Map<string, Environment>()
  for (const digest of new Set(rollouts.map(({ taskDigest }) => taskDigest))) {
    const { environment } = await store.catalogue.task(digest)
    if (environment !== 'none' && !environments.has(environment))
      environments.set(environment, await findEnvironment(environment))
  }
  const environment = (name: string): Environment => {
    const known = environments.get(name)
    if (known !== undefined) return known
    throw new PaddockError('ENVIRONMENT_UNKNOWN', `nothing verifies tasks of the environment ${name}`)
  }
  return async ({ onResult, ...asked }) => {
    const judged: Id[] = []
    const each = (one: Rescored): void => {
      onResult(one)
      if (one.after !== null && !asked.dryRun) judged.push(one.rolloutId)
    }
    try {
      await rescoreRollouts({ ...asked, store, environment, sandbox: null, elsewhere, rollouts, onResult: each })
    } finally {
      await Promise.all(judged.map(onVerdict))
    }
  }
}
