import { z } from 'zod'
import type { FacetName, Facets, RolloutPage } from './contract.ts'
import { partOf } from './fit.ts'
import { oneId } from './paths.ts'
import type { ReadRollout } from './rollout-lines.ts'
import { extentOf } from './pages.ts'
import type { BookRead } from './rollout-book.ts'

const facetNames = ['end', 'status', 'task', 'harness', 'cause', 'weights'] as const satisfies readonly FacetName[]

/** Filters, order and place of a page of rollouts, as the address of the page has them. A facet of `none` means that the rollout has no such value. */
export const rolloutQuery = z.strictObject({
  end: z.string().optional(),
  status: z.string().optional(),
  task: z.string().optional(),
  harness: z.string().optional(),
  cause: z.string().optional(),
  /** What the engine called the weights that sampled it, as a trainer was told. */
  weights: z.string().optional(),
  group: z.string().optional(),
  /** A step at which a trainer disposed of a row of it. */
  step: z.coerce.number().int().optional(),
  /** A part of an id. */
  q: z.string().max(64).optional(),
  sort: z.enum(['made', 'reward', 'duration', 'task']).default('made'),
  order: z.enum(['up', 'down']).default('up'),
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(500).default(200),
  /** Ids whose places are wanted, so that a page that follows a run keeps what it shows in sight. */
  places: z
    .string()
    .transform((text) => text.split(',').filter((id) => id !== ''))
    .pipe(z.array(oneId).max(8))
    .optional(),
})

export type RolloutQuery = z.infer<typeof rolloutQuery>

/** One page of rollouts, with how many there would be for each other value of a column. */
export function pageOf(read: BookRead, query: RolloutQuery): RolloutPage {
  const { rollouts } = read
  const kept = rollouts.filter((one) => fits(one, query, null))
  const all = sorted(kept, query)
  return {
    ...partOf(
      all.map(({ line }) => line),
      query,
    ),
    facets: facetsOf(rollouts, query),
    read: extentOf(read),
    places: Object.fromEntries(
      (query.places ?? []).flatMap((id) => {
        const at = all.findIndex(({ line }) => line.id === id)
        return at === -1 ? [] : [[id, at] as const]
      }),
    ),
  }
}

function facetsOf(rollouts: readonly ReadRollout[], query: RolloutQuery): Facets {
  const count = (name: FacetName): Readonly<Record<string, number>> => {
    const counts = new Map<string, number>()
    for (const one of rollouts) {
      if (!fits(one, query, name)) continue
      const value = valueOf(one, name)
      counts.set(value, (counts.get(value) ?? 0) + 1)
    }
    return Object.fromEntries([...counts].toSorted((a, b) => b[1] - a[1]).slice(0, 50))
  }
  return {
    end: count('end'),
    status: count('status'),
    task: count('task'),
    harness: count('harness'),
    cause: count('cause'),
    weights: count('weights'),
  }
}

/** A facet is counted over what the other filters let through: `but` leaves its own out. */
function fits(one: ReadRollout, query: RolloutQuery, but: FacetName | null): boolean {
  for (const name of facetNames) {
    const wanted = query[name]
    if (name !== but && wanted !== undefined && valueOf(one, name) !== wanted) return false
  }
  if (query.group !== undefined && one.line.groupId !== query.group) return false
  const { step } = query
  if (step !== undefined && one.handed?.given.some((said) => said.step === step) !== true) return false
  return query.q === undefined || query.q === '' || one.line.id.includes(query.q) || one.line.task.includes(query.q)
}

function valueOf({ line, handed }: ReadRollout, name: FacetName): string {
  if (name === 'weights') return handed === null ? 'none' : handed.labels.join(', ')
  return line[name] ?? 'none'
}

function sorted(rollouts: readonly ReadRollout[], { sort, order }: RolloutQuery): readonly ReadRollout[] {
  const sign = order === 'up' ? 1 : -1
  if (sort === 'made') return order === 'up' ? rollouts : rollouts.toReversed()
  if (sort === 'task') return rollouts.toSorted((a, b) => sign * a.line.task.localeCompare(b.line.task))
  const number = ({ line }: ReadRollout): number | null =>
    sort === 'reward'
      ? line.reward
      : line.startedAt === null || line.endedAt === null
        ? null
        : line.endedAt - line.startedAt
  // What has no number stands last, whatever the order.
  return rollouts.toSorted((a, b) => {
    const [left, right] = [number(a), number(b)]
    if (left === null || right === null) return Number(left === null) - Number(right === null)
    return sign * (left - right)
  })
}
