import { type Id, PaddockError } from '../../core/index.ts'
import type { GroupLibrary, RecorderReader } from '../../trajectory/index.ts'
import type { LibraryEvent } from './library.ts'

/** What was recorded of the library of a rollout; null: it did not come to leave one. */
export async function libraryOf(recorder: Pick<RecorderReader, 'events'>, rolloutId: Id): Promise<LibraryEvent | null> {
  const events = await recorder.events({ rolloutId })
  return events.findLast((event) => event.kind === 'library') ?? null
}

/** As groups begin with it: one that is as it was given is still of whom it came from. */
export function leftOf(library: LibraryEvent | null, rolloutId: Id): GroupLibrary | null {
  if (library === null || library.left === null) return null
  return { sha256: library.left, from: library.left === library.given ? library.from : rolloutId }
}

/** The library that a rollout left, for groups that begin with it. Throws `GROUP_INVALID` where it left none. */
export async function libraryLeftBy(recorder: Pick<RecorderReader, 'events'>, rolloutId: Id): Promise<GroupLibrary> {
  const left = leftOf(await libraryOf(recorder, rolloutId), rolloutId)
  if (left !== null) return left
  throw new PaddockError('GROUP_INVALID', `The group cannot be: rollout ${rolloutId} left no library.`, {
    fix: 'Name an ended rollout of a group that was asked for with `library`.',
  })
}
