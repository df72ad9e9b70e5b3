import { isPaddockError } from '../../core/index.ts'
import type { Catalogue, GroupRecord } from '../contract/index.ts'

/**
 * Records a group unless it is there. One that was asked for at another time is the same: a catalogue that was rewound may have
 * lost it, and a node or the client that asks for it anew has not. Throws `STORE_CONFLICT`.
 */
export async function putGroupOnce(
  catalogue: Pick<Catalogue, 'group' | 'putGroup'>,
  group: GroupRecord,
): Promise<void> {
  try {
    await catalogue.putGroup(group)
  } catch (error) {
    if (!isPaddockError(error) || error.code !== 'STORE_CONFLICT') throw error
    const { runId, taskDigest, promptVariant } = await catalogue.group(group.id)
    const isSame = runId === group.runId && taskDigest === group.taskDigest && promptVariant === group.promptVariant
    if (!isSame) throw error
  }
}
