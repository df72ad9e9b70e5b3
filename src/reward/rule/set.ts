import { type Normalisation, normalise, type TextRule } from './rule.ts'

/** How a text is cut into items. Default: one per line, trimmed, empty ones dropped, duplicates count once. */
export interface SetOptions {
  readonly separator?: string | RegExp
  readonly steps?: Normalisation
  /** `all_or_nothing`: 1 only for equal sets; `f1`: harmonic mean of precision and recall. */
  readonly score: 'all_or_nothing' | 'f1'
}

export function set(golds: readonly string[], o: SetOptions): TextRule {
  const steps = o.steps ?? { trim: true, unicode: true }
  const cut = (texts: readonly string[]) => new Set(texts.map((t) => normalise(t, steps)).filter((t) => t !== ''))
  const wanted = cut(golds)
  return (answer) => {
    const given = cut(answer.split(o.separator ?? '\n'))
    const hits = [...given].filter((item) => wanted.has(item)).length
    const why = `${hits} of ${wanted.size} wanted items, ${given.size - hits} others`
    const equal = hits === wanted.size && hits === given.size
    if (equal || o.score === 'all_or_nothing') return { value: equal ? 1 : 0, why }
    return { value: hits === 0 ? 0 : (2 * hits) / (given.size + wanted.size), why }
  }
}
