import type { BoxNeeds } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { SqlData } from './data.ts'
import { engineOf } from './engines/index.ts'

/** Where `submit_sql` keeps what was handed in. */
export const submissionPath = '/workspace/submission.sql'

/**
 * What a task's boxes are, the agent's and the verifier's alike: an image with the database and nothing else of the
 * task. Each box has a file system of its own, so each rollout has its own copy. Gold never enters an image.
 */
export function sqlNeeds(task: TaskOf<SqlData>): BoxNeeds {
  return {
    image: engineOf(task.data.database).image(task),
    profile: 'user',
    workdir: '/workspace',
    user: null,
    env: {},
    cpus: 1,
    memoryMb: 2048,
    fileMb: 1024,
    network: 'none',
    agentTimeoutMs: null,
    verifyTimeoutMs: task.data.limits.verifyMs * statementsOf(task.data),
  }
}

/** Statements of a verdict that may each take all of their limit: gold and submission on every database, gold once more. */
function statementsOf({ neighbours, golds }: SqlData): number {
  return (golds.length + 1) * (1 + neighbours.subsets + neighbours.rebuilds) + golds.length + 1
}
