import { isAbsolute, relative } from 'node:path'
import { z } from 'zod'
import { generatedPlace } from '../../core/index.ts'
import type { Blobs, CatalogueReader, RunRecord } from '../../trajectory/index.ts'
import { type RunBudgets, stageMs } from '../budgets.ts'
import { trainerRunOf } from '../trainer/run-config.ts'
import { boxMarginMs } from '../verify.ts'
import type { VerifyElsewhere } from './contract.ts'
import type { VerifyJobs } from './verify-jobs.ts'

/** {@link VerifyElsewhere} by jobs that nodes claim. */
export function verifyByJobs(o: {
  readonly jobs: Pick<VerifyJobs, 'verify'>
  readonly store: { readonly blobs: Pick<Blobs, 'get'>; readonly catalogue: Pick<CatalogueReader, 'run'> }
  readonly budgets: RunBudgets
}): VerifyElsewhere {
  return async ({ rollout, task, environment, work, toolCalls }, signal) => {
    const taskMs = environment.box(task).verifyTimeoutMs
    const { name, verifierVersion } = environment
    const order = {
      task,
      environment: { name, verifierVersion },
      work,
      toolCalls,
      budgetMs: stageMs('verifyMs', taskMs === null ? null : taskMs + boxMarginMs, o.budgets),
      labels: { run: rollout.runId, rollout: rollout.id },
    }
    const tasks = tasksOf(await o.store.catalogue.run(rollout.runId))
    const root = tasks !== null && holds(tasks, task.source) ? tasks : task.source
    return o.jobs.verify({ order, environment, blobs: o.store.blobs, root }, signal)
  }
}

/** Where the tasks of a run are; null where nobody recorded it. */
function tasksOf(run: RunRecord): string | null {
  const known = asked.safeParse(run.config)
  return known.success ? known.data.request.tasks : (trainerRunOf(run).own?.tasks ?? null)
}

/** What `paddock run` keeps of what a run was asked for with. */
const asked = z.looseObject({ request: z.looseObject({ tasks: z.string() }) })

/** Whether a folder of tasks has the task's own below it. */
function holds(tasks: string, source: string): boolean {
  if (generatedPlace(tasks) !== null || !isAbsolute(tasks)) return false
  const way = relative(tasks, source)
  return !isAbsolute(way) && way !== '..' && !way.startsWith('../')
}
