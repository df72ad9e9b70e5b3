import type { RunRecord } from '../../trajectory/index.ts'
import type { RunComparison, TaskPair } from './contract.ts'
import { partOf } from './fit.ts'
import { isEffective, mean, type ReadRollout, rewardsOf } from './rollout-lines.ts'
import { passRateOf } from './task-pages.ts'

const mostSettings = 300
const maxValueChars = 400

/** A run with its rollouts. */
interface Side {
  readonly run: RunRecord
  readonly rollouts: readonly ReadRollout[]
}

/** Pairs two runs by task. */
export function compareRuns(a: Side, b: Side, part: { readonly after: number; readonly limit: number }): RunComparison {
  const [left, right] = [byTask(a), byTask(b)]
  const pairs = [...new Set([...left.keys(), ...right.keys()])]
    .map((digest): TaskPair => pairOf(digest, left.get(digest) ?? null, right.get(digest) ?? null))
    .toSorted((one, other) => weightOf(other) - weightOf(one) || (one.name < other.name ? -1 : 1))
  const paired = pairs.filter((pair) => pair.a?.mean != null && pair.b?.mean != null)
  const settings = differences(a.run.config, b.run.config)
  const side = ({ run, rollouts }: Side, means: readonly number[]) => ({
    id: run.id,
    name: run.name,
    createdAt: run.createdAt,
    pairedMean: mean(means),
    meanTokens: mean(rollouts.flatMap(({ sampledTokens }) => sampledTokens ?? [])),
  })
  return {
    a: side(
      a,
      paired.flatMap((pair) => pair.a?.mean ?? []),
    ),
    b: side(
      b,
      paired.flatMap((pair) => pair.b?.mean ?? []),
    ),
    paired: paired.length,
    gained: pairs.filter(({ flip }) => flip === 'gained').length,
    lost: pairs.filter(({ flip }) => flip === 'lost').length,
    onlyA: pairs.filter((pair) => pair.b === null).length,
    onlyB: pairs.filter((pair) => pair.a === null).length,
    ...partOf(pairs, part),
    settings: settings.slice(0, mostSettings),
    settingsLeft: Math.max(0, settings.length - mostSettings),
  }
}

function byTask({ rollouts }: Side): ReadonlyMap<string, readonly ReadRollout[]> {
  return Map.groupBy(rollouts, ({ taskDigest }) => taskDigest)
}

function pairOf(digest: string, a: readonly ReadRollout[] | null, b: readonly ReadRollout[] | null): TaskPair {
  const half = (own: readonly ReadRollout[] | null): TaskPair['a'] =>
    own === null ? null : { ...passRateOf(own), mean: mean(rewardsOf(own.filter(isEffective))) }
  const [left, right] = [half(a), half(b)]
  const [before, now] = [isSolved(left), isSolved(right)]
  const flip = before === null || now === null || before === now ? null : now ? 'gained' : 'lost'
  return { digest, name: (a ?? b)?.[0]?.line.task ?? '', a: left, b: right, flip }
}

/** Half or more passed; null: nobody knows. */
function isSolved(half: TaskPair['a']): boolean | null {
  return half === null || half.effective === 0 ? null : half.passed / half.effective >= 0.5
}

/** Flips stand first, then what moved furthest; what cannot be compared stands last. */
function weightOf({ a, b, flip }: TaskPair): number {
  if (a?.mean == null || b?.mean == null) return -1
  return (flip === null ? 0 : 1e6) + Math.abs(a.mean - b.mean)
}

/** Leaves of two JSON values that are not the same, by path. */
function differences(a: unknown, b: unknown): RunComparison['settings'] {
  const [left, right] = [leaves(a, ''), leaves(b, '')]
  return [...new Set([...left.keys(), ...right.keys()])].toSorted().flatMap((path) => {
    const [one, other] = [left.get(path) ?? null, right.get(path) ?? null]
    return one === other ? [] : [{ path, a: shown(one), b: shown(other) }]
  })
}

function leaves(value: unknown, path: string): ReadonlyMap<string, string> {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) {
    if (path === '') return new Map()
    return new Map([[path, JSON.stringify(value) ?? 'null']])
  }
  return new Map(
    Object.entries(value).flatMap(([key, inner]) => [...leaves(inner, path === '' ? key : `${path}.${key}`)]),
  )
}

function shown(text: string | null): string | null {
  return text === null || text.length <= maxValueChars ? text : `${text.slice(0, maxValueChars)} …`
}
