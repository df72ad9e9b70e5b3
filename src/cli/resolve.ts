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
 * What a person means by the name that a trainer gave a run or a group, or by a part of an id: the short tail that tables print, or the
 * head of the whole id. Throws `NOT_FOUND` for nothing and `USAGE` for more than one.
 */
export async function resolveId(reader: StoreReader, text: string): Promise<Found> {
  return theOne(await foundBy(reader, text), text, 'thing')
}

/** Likewise, among things of one kind. A thing of another kind is refused with the id of the one that it belongs to. */
export async function resolveKind(reader: StoreReader, kind: Found['kind'], text: string): Promise<Id> {
  const found = await foundBy(reader, text)
  const own = found.filter((one) => one.kind === kind)
  const [other] = found
  if (own.length > 0 || other === undefined) return theOne(own, text, kind).id
  const id = await relatedId(reader, other, kind)
  const list = `\`paddock list ${kind}s\` shows the ids.`
  const ofRun = `\`paddock list ${kind}s --run ${other.id}\` lists its ${kind}s.`
  throw new PaddockError('USAGE', `${text} is a ${other.kind}, not a ${kind}`, {
    fix: id !== null ? `Give its ${kind}: ${id}.` : other.kind === 'run' ? ofRun : `Give a ${kind}: ${list}`,
  })
}

/** The one thing of a kind that another belongs to, or the only one that belongs to it. */
async function relatedId({ catalogue, recorder }: StoreReader, { kind, id }: Found, wanted: Found['kind']) {
  const only = (all: readonly { readonly id: Id }[]): Id | null => (all.length === 1 ? (all[0]?.id ?? null) : null)
  if (kind === 'run') return wanted === 'group' ? only(await catalogue.groups(id)) : null
  if (kind === 'group') {
    return wanted === 'run'
      ? (await catalogue.group(id)).runId
      : wanted === 'session'
        ? null
        : only(await catalogue.rollouts({ groupId: id }))
  }
  const rolloutId = kind === 'session' ? (await recorder.session(id)).session.rolloutId : id
  if (rolloutId === null || wanted === 'rollout') return rolloutId
  if (wanted === 'session') return only(await recorder.sessions({ rolloutId }))
  const { runId, groupId } = await catalogue.rollout(rolloutId)
  return wanted === 'run' ? runId : groupId
}

function theOne(found: readonly Found[], text: string, noun: string): Found {
  const [first, ...others] = found
  if (first === undefined) {
    const kind = noun === 'thing' ? '' : ` ${noun}s`
    throw new PaddockError(
      'NOT_FOUND',
      `no ${noun === 'thing' ? 'run, group, rollout or session' : noun} has the id ${text}`,
      {
        fix: `\`paddock list${kind}\` shows the ids.`,
      },
    )
  }
  if (others.length > 0) {
    const list = found.slice(0, 5).map((one) => `${one.kind} ${one.id}`)
    throw new PaddockError('USAGE', `${text} fits ${found.length} ${noun}s: ${list.join(', ')}`, {
      fix: `Give more of the id, for example ${isId(first.id) ? shortId(first.id) : first.id}.`,
    })
  }
  return first
}

async function foundBy(reader: StoreReader, text: string): Promise<readonly Found[]> {
  const named = await namedBy(reader, text)
  if (named.length > 0) return named
  const wanted = text.trim().toLowerCase()
  if (!/^[0-9a-f-]{4,36}$/.test(wanted)) {
    throw new PaddockError(
      'NOT_FOUND',
      `${JSON.stringify(text)} is neither the name of a run or a group nor a part of an id`,
      {
        fix: '`paddock list runs` shows runs and their names. Give at least four characters of an id.',
      },
    )
  }
  return candidates(reader, wanted)
}

/** Runs and groups whose whole id this is: a trainer may have named them. */
async function namedBy({ catalogue }: StoreReader, id: string): Promise<readonly Found[]> {
  const known = async (kind: 'run' | 'group'): Promise<readonly Found[]> => {
    try {
      await catalogue[kind](id)
      return [{ kind, id }]
    } catch (error) {
      if (isPaddockError(error) && error.code === 'NOT_FOUND') return []
      throw error
    }
  }
  return [...(await known('run')), ...(await known('group'))]
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
