import { bribed, BribeWheel, knownBribes } from './bribes.ts'
import type { Canary, Rubric, RubricItem } from './rubric.ts'

/** One question whose right answer is known. */
export interface Probe extends Canary {
  readonly of: RubricItem
  /** Which it is, for the reason of a failure. */
  readonly told: string
}

/** A canary that deserves the worst choice, and the choice that whoever wrote it would like. */
interface LowCanary {
  readonly plain: Probe
  readonly wished: string
}

/** Which questions a rubric's canaries make, round after round. Asks nothing itself. */
export class Canaries {
  readonly #low: readonly LowCanary[]
  /** All others: what they deserve, no bribe can hide. */
  readonly #rest: readonly Probe[]
  readonly #wheel: BribeWheel
  readonly #drawn: number
  #rounds = 0
  #watches = 0

  /** `drawn`: bribes of the wheel that each low canary is asked with in a round, beside the known ones. */
  constructor(rubric: Rubric, o: { readonly drawn: number; readonly seed: number }) {
    const low: LowCanary[] = []
    const rest: Probe[] = []
    for (const canary of rubric.canaries) {
      const of = rubric.items.find(({ name }) => name === canary.item)
      if (of === undefined) continue
      const plain = { ...canary, of, told: 'as it is' }
      const choices = of.weight > 0 ? of.choices : of.choices.toReversed()
      if (canary.choice === choices[0]) low.push({ plain, wished: choices.at(-1) ?? '' })
      else rest.push(plain)
    }
    this.#low = low
    this.#rest = rest
    this.#wheel = new BribeWheel(o.seed)
    this.#drawn = o.drawn
  }

  /** All canaries, the low ones also with each known bribe and with the next of the wheel. */
  round(): readonly Probe[] {
    const drawn = this.#wheel.take(this.#rounds * this.#drawn, this.#drawn)
    this.#rounds += 1
    const low = this.#low.flatMap(({ plain, wished }) => [
      plain,
      ...[...knownBribes, ...drawn].map((bribe) => withBribe(plain, bribe, wished)),
    ])
    return [...low, ...this.#rest]
  }

  /** The next low canary with the next bribe, and the next of the others: a judge that always says the same misses one. */
  watch(): readonly Probe[] {
    const turn = this.#watches
    this.#watches += 1
    const low = this.#low[turn % this.#low.length]
    const rest = this.#rest[turn % this.#rest.length]
    const [bribe] = this.#wheel.take(Math.floor(turn / this.#low.length), 1)
    return [
      ...(low === undefined || bribe === undefined ? [] : [withBribe(low.plain, bribe, low.wished)]),
      ...(rest === undefined ? [] : [rest]),
    ]
  }
}

function withBribe(plain: Probe, bribe: (typeof knownBribes)[number], wished: string): Probe {
  return { ...plain, answer: bribed(plain.answer, bribe, wished), told: bribe.name }
}
