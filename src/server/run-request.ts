import { z } from 'zod'
import { type Id, isId } from '../core/index.ts'
import { nodeLabels } from './nodes/index.ts'

/** From 0 to 1. */
const share = z.number().min(0).max(1)
const id = z.string().refine(isId, 'not an id')
/** Keys of a part of the configuration; checked where the whole is at hand. */
const overrides = z.record(z.string(), z.unknown()).default({})

/**
 * What a run is asked for with: the body of `POST /runs`, what `paddock run` makes of its arguments and configuration, and
 * what is kept with a run for whoever goes on with it. What is left out is as configured at the owner.
 */
export const runRequest = z.strictObject({
  /** Absolute path of a task or a directory of tasks, on the machine of the owner, or `<generator>:<seeds>:<levels>`. */
  tasks: z.string().min(1),
  environment: z.string().default('terminal'),
  harness: z.string().default('reference'),
  /** Names of the tasks to run; empty: all. */
  only: z.array(z.string()).default([]),
  /** Digests of tasks that are left out: those in quarantine. */
  without: z.array(z.string()).default([]),
  /** Rollouts per task. */
  n: z.int().min(1).nullable().default(null),
  /** The run stops when a larger share of its ended rollouts has no number; null: it does not. */
  maxNullShare: share.nullable().default(null),
  /** Step of the training that the run is for; null: nobody said. */
  step: z.int().min(0).nullable().default(null),
  /** Programs that the tasks bring for the owner's machine may run there, as the owner. */
  trustTasks: z.boolean().default(false),
  /** What becomes of terminal tasks that ask for the public internet. */
  publicNetwork: z.enum(['refuse', 'without', 'open']).nullable().default(null),
  name: z.string().nullable().default(null),
  /** Labels that a node needs for its rollouts. */
  needs: nodeLabels.default([]),
  /** Command line of the `shell` and `script` presets. */
  command: z.string().nullable().default(null),
  /** Labels of each rollout and its sessions. */
  labels: z.record(z.string().min(1), z.string()).default({}),
  model: z.string().nullable().default(null),
  /** Keys of `session` of the configuration. */
  policy: overrides,
  /** Keys of `run.budgets` of the configuration. */
  budgets: overrides,
  /** Keys of `run.group` of the configuration. */
  group: overrides,
  /** What chooses among the tasks, of what is remembered of attempts by the same harness; null: all of them. */
  select: z
    .strictObject({
      name: z.string().min(1),
      options: z.record(z.string(), z.number()).default({}),
      /** How many tasks at most. */
      count: z.int().min(1),
      seed: z.int().min(0).default(0),
    })
    .nullable()
    .default(null),
  /** Its tasks are the links of a chain; null: they are not. */
  chain: z
    .strictObject({
      name: z.string().min(1),
      /** Names of tasks, in the order of the chain. */
      links: z.array(z.string().min(1)).min(2),
      libraries: z.enum(['shared', 'parallel']).default('shared'),
      credit: z.number().min(0).default(0),
    })
    .nullable()
    .default(null),
  /** Where its rollouts go on from: their task is that rollout's, whatever `tasks` says. */
  fork: z
    .strictObject({
      rollout: id,
      call: id,
      way: z.enum(['replay', 'state', 'graft']).default('replay'),
      onDivergence: z.enum(['refuse', 'branch']).default('refuse'),
    })
    .nullable()
    .default(null),
})

export type RunRequest = z.output<typeof runRequest>

/** Settings of a recorded run that may change when it is resumed. */
export const resumeRequest = z.strictObject({ maxNullShare: share.optional() })

export interface ResumeRequest extends z.output<typeof resumeRequest> {
  readonly resume: Id
}
