import { type Id, isPaddockError, PaddockError } from '../core/index.ts'
import { putGroupOnce, type RolloutView } from '../trajectory/index.ts'
import type { RunOptions } from './contract.ts'
import { begin, ownOf } from './run.ts'
import { runRollout } from './rollout.ts'
import type { NodeJob } from './nodes/index.ts'

/** A run of a coordinator as a node does parts of it, each rollout as the run itself would. */
export interface RunAtNode extends AsyncDisposable {
  /** One rollout, to its end. `fault`: code of what one failed of that ended as `infra`. Throws `STORE_*`. */
  work(job: NodeJob, signal: AbortSignal): Promise<{ readonly rolloutId: Id; readonly fault: string | null }>
}

/** The record of a job's rollout, as far as it came; null: it never began. */
export async function rolloutOfJob(
  catalogue: Pick<RunOptions['store']['catalogue'], 'rollouts'>,
  { group, slot, attempt }: Pick<NodeJob, 'slot' | 'attempt'> & { readonly group: { readonly id: Id } },
): Promise<RolloutView | null> {
  const known = await catalogue.rollouts({ groupId: group.id, slots: [slot] })
  return known.findLast((one) => one.attempt === attempt) ?? null
}

/** Throws what `runRollouts` throws before any rollout. */
export async function openRunAtNode(options: RunOptions, record: NodeJob['order']['run']): Promise<RunAtNode> {
  const { store, tasks } = options
  await store.catalogue.putRun(record)
  const begun = await begin(options)
  const known = new Map(tasks.map((task) => [task.digest, task]))
  return {
    work: async ({ group, spec, task: digest, slot, attempt, place }, signal) => {
      const task = known.get(digest)
      if (task === undefined) {
        throw new PaddockError('NODE_UNFIT', `the task ${digest} is not among those that came from the coordinator`)
      }
      await store.catalogue.putTask(task)
      await putGroupOnce(store.catalogue, group)
      const run = { ...begun.run, ...ownOf(options, begun.run, spec), signal }
      const member = { task, group, slot, spec, deadlineMs: spec.deadlineMs, order: place }
      const { summary, fault } = await runRollout(run, member, attempt)
      return { rolloutId: summary.rolloutId, fault: isPaddockError(fault) ? fault.code : null }
    },
    [Symbol.asyncDispose]: () => begun[Symbol.asyncDispose](),
  }
}
