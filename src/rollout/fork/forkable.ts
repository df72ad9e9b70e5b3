import type { Task } from '../../core/index.ts'
import { requireReplayable } from '../../proxy/index.ts'
import type { ForkFrom, ForkWay } from '../../trajectory/index.ts'
import type { RunParts } from '../run-parts.ts'
import { refused } from './past.ts'
import { placeOf } from './place.ts'

/**
 * Throws `FORK_REFUSED` for what could never be replayed: a rollout that Paddock did not run, another task or program than then, a
 * harness that nobody knows to ask the same again, a task of several steps or with a user, a call that no conversation goes on from.
 */
export async function requireForkable(
  { store, sandbox, harness, environment }: Pick<RunParts, 'store' | 'sandbox' | 'harness' | 'environment'>,
  fork: ForkFrom,
  task: Task,
): Promise<void> {
  const { rolloutId } = fork
  const parent = await store.catalogue.rollout(rolloutId)
  if (parent.taskDigest !== task.digest) throw refused(`rollout ${rolloutId} is of another task`)
  if ((environment?.steps(task) ?? null) !== null)
    throw refused('its task has several steps, each with a start of its own')
  if ((environment?.user(task) ?? null) !== null)
    throw refused('its task has a user, who was told what the fork has not said yet')
  if ((environment?.agents(task) ?? null) !== null)
    throw refused('its task has several agents, who were told what the fork has not said yet')
  if (fork.way === 'replay' && parent.labels['library'] !== undefined) {
    throw refused(`rollout ${rolloutId} is of a chain, and a fresh box has nothing of its library`)
  }
  if (parent.harness !== harness.name) {
    throw refused(`rollout ${rolloutId} is of the harness ${parent.harness}, and this is ${harness.name}`)
  }
  const then = versionOf((await store.catalogue.run(parent.runId)).config)
  if (then !== null && then !== harness.version) {
    throw refused(`rollout ${rolloutId} is of ${harness.name} ${then}, and this is ${harness.version}`)
  }
  requireWay(harness, fork.way)
  if (fork.way !== 'replay' && environment?.resumesFromFiles !== true) {
    throw refused(
      `${environment?.name ?? 'its task'} keeps more than files, so that a copy of the box is no place to go on from`,
    )
  }
  if (fork.way !== 'replay' && (environment?.tools(task) ?? []).some(({ deferred }) => deferred !== undefined)) {
    throw refused('its tools answer later, and what is outstanding is in no copy of the box')
  }
  requireReplayable((await placeOf({ store, sandbox }, fork)).past)
}

/** A way that was not measured for this version of a harness is off. */
function requireWay(harness: RunParts['harness'], way: ForkWay): void {
  const { name, version } = harness
  if (way === 'replay' && harness.replays !== true)
    throw refused(`nobody knows whether ${name} ${version} asks the same when it is started anew`)
  if (way === 'state' && (harness.place !== 'host' || harness.restores !== true))
    throw refused(`${name} ${version} cannot be given its messages, as way state does`)
  if (way === 'graft' && (harness.place !== 'box' || harness.resumes === undefined))
    throw refused(`nobody measured that ${name} ${version} can be grafted`)
}

/** Null where the run does not tell it. */
function versionOf(config: unknown): string | null {
  const harness: unknown = typeof config === 'object' && config !== null && 'harness' in config ? config.harness : null
  const version = typeof harness === 'object' && harness !== null && 'version' in harness ? harness.version : null
  return typeof version === 'string' ? version : null
}
