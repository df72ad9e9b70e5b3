import { isDeepStrictEqual } from 'node:util'
import { type Id, isPaddockError, PaddockError, type Task } from '../../core/index.ts'
import type { Catalogue, GroupRecord, GroupSpec } from '../../trajectory/index.ts'

/** A group as somebody asks for it under an id of their own. */
export interface AskedGroup {
  readonly id: Id
  readonly runId: Id
  readonly task: Task
  readonly promptVariant: string
  readonly spec: GroupSpec
}

/** Records a group, once: asking again for the same is that group. Throws `STORE_CONFLICT` where the id stands for another one. */
export async function recordGroup(
  catalogue: Pick<Catalogue, 'group' | 'rounds' | 'putTask' | 'putGroup'>,
  { id, runId, task, promptVariant, spec }: AskedGroup,
  at: number,
): Promise<GroupRecord> {
  const known = await orNull(catalogue.group(id))
  if (known === null) {
    const group = { id, runId, taskDigest: task.digest, promptVariant, createdAt: at }
    await catalogue.putTask(task)
    await catalogue.putGroup(group)
    return group
  }
  const [first] = await catalogue.rounds(id)
  const same = known.runId === runId && known.taskDigest === task.digest && known.promptVariant === promptVariant
  if (!same || (first !== undefined && !isDeepStrictEqual(first.spec, spec))) {
    throw new PaddockError('STORE_CONFLICT', `another group stands under ${id}`)
  }
  return known
}

/** Null for what is not there. */
export async function orNull<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked
  } catch (error) {
    if (isPaddockError(error) && error.code === 'NOT_FOUND') return null
    throw error
  }
}
