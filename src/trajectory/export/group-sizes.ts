import type { ExportRollout, SelectionQuery } from '../rows-contract.ts'

interface SizedRollout {
  readonly slot: number
  readonly reward: number | null
  readonly trainable: number
}

/** An export whose groups all have the same number of rollouts. */
interface SizeChoice {
  readonly size: number
  readonly groups: number
  readonly rollouts: number
  readonly tokens: number
}

/** The groups of an export, for choosing one size for them. Memory grows with rollouts: three numbers each. */
export class GroupSizes {
  readonly #query: SelectionQuery
  readonly #groups = new Map<string, SizedRollout[]>()

  constructor(query: SelectionQuery) {
    this.#query = query
  }

  note({ rollout, group, rows, verdict }: ExportRollout): void {
    let trainable = 0
    for (const { mask } of rows) for (const value of mask) trainable += value
    const share = { slot: rollout.slot, reward: verdict?.reward ?? null, trainable }
    const members = this.#groups.get(group.id)
    if (members === undefined) this.#groups.set(group.id, [share])
    else members.push(share)
  }

  /** The option for the size that keeps the most trainable tokens, and what each size that occurs keeps. */
  fix(): string {
    const sizes = [...new Set([...this.#groups.values()].map(({ length }) => length))]
    const choices = sizes.map((size) => this.#choice(size)).toSorted((a, b) => b.tokens - a.tokens || b.size - a.size)
    const option = `\`--exact-group-size ${choices[0]?.size ?? 1}\``
    // Rollouts cut off by a limit may come back under another size, so nothing can be counted here.
    if (this.#query.limit !== undefined) return `Add ${option}: the limit then leaves out whole groups.`
    const all = this.#groups.size
    const told = choices.slice(0, 5).map(({ size, groups, rollouts, tokens }) => {
      const part = groups === all ? '' : `${groups} of `
      return `${size}: ${part}${all} groups, ${rollouts} rollouts, ${tokens} tokens`
    })
    return `Add ${option}, which keeps the most tokens to train. ${told.join('; ')}.`
  }

  /** As the selection trims: the first by slot stay, and smaller groups are left out. */
  #choice(size: number): SizeChoice {
    const kept = [...this.#groups.values()]
      .filter(({ length }) => length >= size)
      .map((members) => members.toSorted((a, b) => a.slot - b.slot).slice(0, size))
      .filter(
        (members) => this.#query.dropZeroVariance !== true || new Set(members.map(({ reward }) => reward)).size > 1,
      )
    const tokens = kept.flat().reduce((sum, { trainable }) => sum + trainable, 0)
    return { size, groups: kept.length, rollouts: kept.length * size, tokens }
  }
}
