import { type Given, type NullShare, nullShareOf, type RunTraining, type StepMetrics } from '../../trajectory/index.ts'
import type { Curve, CurvePage, Means } from './contract.ts'
import { isEffective, mean, type ReadRollout, rewardsOf } from './rollout-lines.ts'

const mostSteps = 500
const mostCurves = 60
const mostWeights = 200
const mostParts = 40
/** Characters of a metric's name that a page gets. */
const maxNameChars = 200

/** A run over its trainer's steps, over its weights, and in order of making. */
export function curvePage(
  rollouts: readonly ReadRollout[],
  training: Pick<RunTraining, 'metrics' | 'given' | 'ordinals'>,
  nulls: NullShare,
): CurvePage {
  const told = training.metrics()
  const standing = told.filter(({ undone }) => !undone)
  const given = Map.groupBy(training.given(), ({ step }) => step)
  const all = [...new Set([...standing.map(({ step }) => step), ...given.keys()])].toSorted((a, b) => a - b)
  const steps = thinned(all)
  const byStep = new Map(standing.map((one) => [one.step, one]))
  const curves: Curve[] = [
    ...(given.size === 0 ? [] : ofDispositions(steps, given)),
    ...named(
      standing,
      ({ values }) => Object.keys(values),
      '',
      (name) => steps.map((step) => byStep.get(step)?.values[name] ?? null),
    ),
    ...named(
      standing,
      ({ mismatch }) => Object.keys(mismatch ?? {}),
      'mismatch: ',
      (name) => steps.map((step) => byStep.get(step)?.mismatch?.[name] ?? null),
    ),
  ]
  return {
    steps,
    allSteps: all.length,
    undone: told.length - standing.length,
    curves: curves.slice(0, mostCurves),
    left: Math.max(0, curves.length - mostCurves),
    weights: byWeights(rollouts, training.ordinals, nulls.versions),
    parts: inParts(rollouts),
  }
}

/** At most so many, evenly; the last one is always there. */
function thinned(steps: readonly number[]): readonly number[] {
  const every = Math.ceil(steps.length / mostSteps)
  return steps.filter((_, at) => (steps.length - 1 - at) % Math.max(1, every) === 0)
}

function named(
  told: readonly StepMetrics[],
  names: (one: StepMetrics) => readonly string[],
  prefix: string,
  values: (name: string) => readonly (number | null)[],
): readonly Curve[] {
  return [...new Set(told.flatMap(names))]
    .toSorted()
    .map((name) => ({ name: `${prefix}${name}`.slice(0, maxNameChars), values: values(name) }))
}

/** What the trainer said of rows, step by step. */
function ofDispositions(steps: readonly number[], given: ReadonlyMap<number, readonly Given[]>): readonly Curve[] {
  const at = (of: (rows: readonly Given[]) => number | null): readonly (number | null)[] =>
    steps.map((step) => {
      const rows = given.get(step)
      return rows === undefined ? null : of(rows)
    })
  return [
    { name: 'rows: used', values: at((rows) => rows.filter(({ outcome }) => outcome === 'used').length) },
    { name: 'rows: left out', values: at((rows) => rows.filter(({ outcome }) => outcome !== 'used').length) },
    { name: 'rows: mean reward used', values: at((rows) => mean(rows.flatMap(({ rewardUsed }) => rewardUsed ?? []))) },
  ]
}

function byWeights(
  rollouts: readonly ReadRollout[],
  ordinals: ReadonlyMap<string, number>,
  nulls: NullShare['versions'],
): CurvePage['weights'] {
  const found = new Map<string, ReadRollout[]>()
  for (const one of rollouts) {
    for (const label of one.handed?.labels ?? []) {
      const own = found.get(label)
      if (own === undefined) found.set(label, [one])
      else own.push(one)
    }
  }
  return (
    [...found]
      // A trainer gets members with a number only; the rounds list the others.
      .map(([label, own]) => ({
        label,
        ordinal: ordinals.get(label) ?? null,
        ...meansOf(own),
        nullShare: nulls[label]?.share ?? null,
      }))
      .toSorted((a, b) => (a.ordinal ?? -1) - (b.ordinal ?? -1))
      .slice(-mostWeights)
  )
}

function inParts(rollouts: readonly ReadRollout[]): readonly Means[] {
  const count = Math.min(mostParts, rollouts.length)
  return Array.from({ length: count }, (_, part) =>
    meansOf(
      rollouts.slice(Math.floor((part * rollouts.length) / count), Math.floor(((part + 1) * rollouts.length) / count)),
    ),
  )
}

function meansOf(rollouts: readonly ReadRollout[]): Means {
  const effective = rollouts.filter(isEffective)
  return {
    rollouts: rollouts.length,
    effective: effective.length,
    meanReward: mean(rewardsOf(effective)),
    meanTokens: mean(rollouts.flatMap(({ sampledTokens }) => sampledTokens ?? [])),
    nullShare: nullShareOf(rollouts.map(({ counted }) => counted)).share,
    meanAge: mean(rollouts.flatMap(({ handed }) => handed?.age ?? [])),
  }
}
