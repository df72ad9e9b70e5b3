/** What a task's rollouts came to. Rollouts without a number are not among them. */
export interface TaskScore {
  readonly rewards: readonly number[]
  /** How many of them passed. */
  readonly passed: number
}

export interface Interval {
  readonly low: number
  readonly high: number
  readonly level: number
}

/** Of `k` rollouts of a task: the share of tasks of which one passes, and of which all do. */
export interface PassAt {
  readonly k: number
  readonly any: number
  readonly all: number
  /** Tasks that have as many rollouts with a number; the others are not in it. */
  readonly tasks: number
}

export interface EvalScore {
  /** Tasks with a number. */
  readonly tasks: number
  readonly rollouts: number
  /** Over tasks, each the mean of its rollouts. Null: nothing has a number. */
  readonly mean: number | null
  /** Of the mean, for tasks like these. Null where other rewards than 0 and 1 are of one task, or of means that are all alike. */
  readonly interval: Interval | null
  readonly pass: readonly PassAt[]
}

const level = 0.95
/** Of the standard normal distribution, at 1 - (1 - level) / 2. */
const z = 1.959963984540054

/** Scores tasks of up to `k` rollouts each. */
export function scoreOf(scores: readonly TaskScore[], k: number): EvalScore {
  const known = scores.filter(({ rewards }) => rewards.length > 0)
  const means = known.map(({ rewards }) => meanOf(rewards))
  return {
    tasks: known.length,
    rollouts: known.reduce((sum, { rewards }) => sum + rewards.length, 0),
    mean: known.length === 0 ? null : meanOf(means),
    interval: intervalOf(known),
    pass: sizes(k)
      .map((size) => passAt(known, size))
      .filter(({ tasks }) => tasks > 0),
  }
}

/** 1, 2, 4, … and `k`. */
function sizes(k: number): readonly number[] {
  const found: number[] = []
  for (let size = 1; size < k; size *= 2) found.push(size)
  return [...found, k]
}

/**
 * Without bias from the sample's size: 1 - C(n - c, k) / C(n, k), the chance that k rollouts drawn from the n of a task have
 * one of its c passes (Chen et al. 2021, arXiv 2107.03374, section 2.1); and C(c, k) / C(n, k), that all k are passes.
 */
function passAt(scores: readonly TaskScore[], k: number): PassAt {
  const large = scores.filter(({ rewards }) => rewards.length >= k)
  const any = large.map(({ rewards: { length: n }, passed }) => 1 - share(n - passed, n, k))
  const all = large.map(({ rewards: { length: n }, passed }) => share(passed, n, k))
  return { k, any: meanOf(any), all: meanOf(all), tasks: large.length }
}

/** C(part, k) / C(whole, k), as a product that stays small. */
function share(part: number, whole: number, k: number): number {
  let found = 1
  for (let i = 0; i < k; i += 1) found *= Math.max(0, part - i) / (whole - i)
  return found
}

/**
 * Tasks are the sample: rollouts of one task are no independent ones. Rewards of 0 and 1 have Wilson's interval, which also holds
 * where all came out alike, over as many trials as the tasks are worth; others Student's, over the means of the tasks.
 */
function intervalOf(scores: readonly TaskScore[]): Interval | null {
  const means = scores.map(({ rewards }) => meanOf(rewards))
  const n = means.length
  if (n === 0) return null
  const mean = meanOf(means)
  const ofMean = n < 2 ? 0 : means.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (n - 1) / n
  const t = n < 2 ? Number.POSITIVE_INFINITY : studentQuantile(n - 1)
  if (scores.every(({ rewards }) => rewards.every((one) => one === 0 || one === 1))) {
    return wilson(mean, trialsOf(scores, mean, { ofMean, t }))
  }
  if (ofMean === 0) return null
  const half = t * Math.sqrt(ofMean)
  return { low: mean - half, high: mean + half, level }
}

/**
 * Effective sample size with its correction for few tasks (Korn and Graubard 1998, Survey Methodology 24, 193): at least the
 * tasks, at most the rollouts.
 */
function trialsOf(
  scores: readonly TaskScore[],
  mean: number,
  { ofMean, t }: { readonly ofMean: number; readonly t: number },
): number {
  const n = scores.length
  if (n < 2 || mean === 0 || mean === 1) return n
  const rollouts = scores.reduce((sum, { rewards }) => sum + rewards.length, 0)
  if (ofMean === 0) return rollouts
  return Math.min(rollouts, Math.max(n, ((mean * (1 - mean)) / ofMean) * (z / t) ** 2))
}

/** Wilson 1927: the score interval of a share of `n` trials. */
function wilson(portion: number, n: number): Interval {
  const centre = (portion + (z * z) / (2 * n)) / (1 + (z * z) / n)
  const half = (z / (1 + (z * z) / n)) * Math.sqrt((portion * (1 - portion)) / n + (z * z) / (4 * n * n))
  return { low: Math.max(0, centre - half), high: Math.min(1, centre + half), level }
}

/** Two-sided at {@link level}: exact for one and two degrees of freedom, then the expansion in 1/v (Abramowitz and Stegun 26.7.5). */
function studentQuantile(v: number): number {
  if (v === 1) return 12.706204736432095
  if (v === 2) return 4.302652729696142
  const g1 = (z ** 3 + z) / 4
  const g2 = (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96
  const g3 = (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384
  const g4 = (79 * z ** 9 + 776 * z ** 7 + 1482 * z ** 5 - 1920 * z ** 3 - 945 * z) / 92160
  return z + g1 / v + g2 / v ** 2 + g3 / v ** 3 + g4 / v ** 4
}

function meanOf(numbers: readonly number[]): number {
  return numbers.length === 0 ? 0 : numbers.reduce((sum, one) => sum + one, 0) / numbers.length
}
