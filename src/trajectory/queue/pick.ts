import type { JobNeeds } from '../contract/index.ts'

/** What decides which of two ready jobs goes first. */
interface Ranked {
  readonly n: number
  readonly priority: number
  readonly needs: string
}

/**
 * Two sorted streams as one: by priority, and within one priority those of `own` first, which are jobs of groups that the
 * node works on already. A job that stands in both comes once.
 */
export function* inOrder<Row extends Ranked>(own: Iterable<Row>, all: Iterable<Row>): Generator<Row> {
  const first = [...own]
  const seen = new Set(first.map(({ n }) => n))
  for (const row of all) {
    while (first[0] !== undefined && first[0].priority >= row.priority) yield* first.splice(0, 1)
    if (!seen.has(row.n)) yield row
  }
  yield* first
}

/** The first jobs of a stream that a node can take together. One that does not fit is passed over. */
export function fitting<Row extends Ranked>(
  jobs: Iterable<Row>,
  node: {
    readonly labels: ReadonlySet<string>
    readonly capacity: Readonly<Record<string, number>>
    readonly limit: number
  },
): readonly Row[] {
  const chosen: Row[] = []
  const free = new Map(Object.entries(node.capacity))
  if (node.limit <= 0) return chosen
  for (const job of jobs) {
    // Written by the queue itself.
    const { labels, capacity } = JSON.parse(job.needs) as JobNeeds
    const needs = Object.entries(capacity)
    if (!labels.every((label) => node.labels.has(label))) continue
    if (!needs.every(([name, amount]) => amount <= (free.get(name) ?? 0))) continue
    for (const [name, amount] of needs) free.set(name, (free.get(name) ?? 0) - amount)
    chosen.push(job)
    if (chosen.length >= node.limit) break
  }
  return chosen
}
