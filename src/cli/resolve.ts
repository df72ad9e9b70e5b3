import { type Id, isId, isPaddockError, PaddockError } from '../core/index.ts'
import type { StoreReader } from '../trajectory/index.ts'
import { shortId } from './present/units.ts'

/** A recorded thing that has an id of its own. */
export interface Found {
  readonly kind: 'run' | 'group' | 'rollout' | 'session'
  readonly id: Id
}

/** Most things that are looked through for a tail. */
const searchLimit = 100_000

/**
 * What a person means by a part of an id: the short tail that tables print, or the head of the whole id. Throws
 * `NOT_FOUND` for nothing and `USAGE` for more than one.
 */
export async function resolveId(reader: StoreReader, text: string): Promise<Found> {
  const wanted = text.trim().toLowerCase()
  if (!/^[0-9a-f-]{4,36}$/.test(wanted)) {
    throw new PaddockError('USAGE', `"${text}" is not an id or a part of one`, {
      fix: 'Give at least four characters of an id; `paddock list` shows them.',
    })
  }
  const found = await candidates(reader, wanted)
  const [first, ...others] = found
  if (first === undefined) throw new PaddockError('NOT_FOUND', `nothing has the id ${text}`)
  if (others.length > 0) {
    const list = found.slice(0, 5).map((one) => `${one.kind} ${one.id}`)
    throw new PaddockError('USAGE', `${text} fits ${found.length} things: ${list.join(', ')}`, {
      fix: `Give more of the id, for example ${isId(first.id) ? shortId(first.id) : first.id}.`,
    })
  }
  return first
}

async function candidates(reader: StoreReader, wanted: string): Promise<readonly Found[]> {
  const fits = (id: Id): boolean => id.startsWith(wanted) || id.endsWith(wanted)
  const { catalogue, recorder } = reader
  const [heads, sessions, runs, rollouts] = await Promise.all([
    catalogue.resolve(wanted),
    recorder.sessions({ limit: searchLimit }),
    catalogue.runs(searchLimit),
    catalogue.rollouts({ limit: searchLimit }),
  ])
  const groups = new Set(rollouts.map((rollout) => rollout.groupId))
  const all: Found[] = [
    ...heads,
    ...runs.map(({ id }) => ({ kind: 'run' as const, id })),
    ...[...groups].map((id) => ({ kind: 'group' as const, id })),
    ...rollouts.map(({ id }) => ({ kind: 'rollout' as const, id })),
    ...sessions.map(({ id }) => ({ kind: 'session' as const, id })),
  ]
  return [...new Map(all.filter(({ id }) => fits(id)).map((one) => [one.id, one])).values()]
}

/** A run by the name that its trainer gave it, else by a part of its id. Throws as {@link resolveId}. */
export async function resolveRun(reader: StoreReader, text: string): Promise<Id> {
  const named = await reader.catalogue.run(text).catch((error: unknown) => {
    if (isPaddockError(error) && error.code === 'NOT_FOUND') return null
    throw error
  })
  return named === null ? (await resolveId(reader, text)).id : named.id
}
