import { type Id, PaddockError } from '../../core/index.ts'
import type { GroupLibrary, RecorderReader } from '../../trajectory/index.ts'

/** The library that a rollout left, for groups that begin with it. Throws `GROUP_INVALID` where it left none. */
export async function libraryLeftBy(recorder: Pick<RecorderReader, 'events'>, rolloutId: Id): Promise<GroupLibrary> {
  const event = (await recorder.events({ rolloutId })).findLast(({ kind }) => kind === 'library')
  if (event?.kind === 'library' && event.left !== null) {
    return { sha256: event.left, from: event.left === event.given ? event.from : rolloutId }
  }
  throw new PaddockError('GROUP_INVALID', `The group cannot be: rollout ${rolloutId} left no library.`, {
    fix: 'Name an ended rollout of a group that was asked for with `library`.',
  })
}
