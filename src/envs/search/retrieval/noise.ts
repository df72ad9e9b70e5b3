import { createHash } from 'node:crypto'
import type { Hit } from '../corpus/index.ts'
import type { NoiseCurriculum } from '../data.ts'

/** How far down the ranking the passages stand that take the place of good ones. */
export const noiseDepth = 50

/**
 * Puts passages from far down a ranking in the place of some of its best, as a poor search engine would (ZeroSearch's
 * noise without a model). `ranking` goes down to {@link noiseDepth}. Which
 * places are hit is decided by the query and the place, so that all rollouts of a group see the same; passages in `spared`
 * stay, else a question could not be answered at all.
 */
export function withNoise(
  ranking: readonly Hit[],
  o: {
    readonly query: string
    readonly share: number
    readonly topk: number
    readonly spared: ReadonlySet<string>
    /** Other seeds hit other places. */
    readonly seed?: number
  },
): readonly Hit[] {
  const best = ranking.slice(0, o.topk)
  if (o.share === 0) return best
  const poor = ranking.slice(o.topk).filter(({ id }) => !o.spared.has(id))
  return best.map((hit, place) => {
    if (o.spared.has(hit.id) || chance(o.query, place, o.seed ?? 0) >= o.share) return hit
    // From the end: the further down, the poorer.
    return poor.pop() ?? hit
  })
}

/**
 * The share of noise at a step of a training, as ZeroSearch lets it grow (`Alibaba-NLP/ZeroSearch`,
 * `llm_agent/generation.py`):
 * `from + (base^(step/steps) - 1) / (base - 1) * (to - from)`, evenly for base 1; from the last step on it stays. What is
 * spoilt at one step is spoilt at all later ones too.
 */
export function noiseAt({ from, to, steps, base }: NoiseCurriculum, step: number): number {
  const progress = Math.min(1, Math.max(0, step / steps))
  return from + (base === 1 ? progress : (base ** progress - 1) / (base - 1)) * (to - from)
}

/** A number from 0 up to 1 that depends on its arguments only. */
function chance(query: string, place: number, seed: number): number {
  return (
    createHash('sha256')
      .update(`${seed === 0 ? '' : `${seed}\0`}${place}\0${query}`)
      .digest()
      .readUInt32BE(0) /
    2 ** 32
  )
}
