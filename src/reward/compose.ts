/**
 * How named components become one number.
 * - `weighted`: sum of weight x component over the sum of weights; components without a weight count nothing.
 * - `product`: all named components (or all there are) multiplied.
 * - `gate`: 0 unless every gated component reaches its threshold, else what `over` says.
 * - `first_failing`: the components in this order; the value of the first below `threshold` (default 1), else 1.
 */
export type Composition =
  | { readonly kind: 'weighted'; readonly weights: Readonly<Record<string, number>> }
  | { readonly kind: 'product'; readonly of?: readonly string[] }
  | { readonly kind: 'gate'; readonly gates: Readonly<Record<string, number>>; readonly over: Composition }
  | { readonly kind: 'first_failing'; readonly order: readonly string[]; readonly threshold?: number }

/** A composed number, or the component that made it impossible. */
export type Composed = { readonly ok: true; readonly reward: number } | { readonly ok: false; readonly reason: string }

/**
 * Composes. A component that a rule names and nobody measured, or one that is not finite, gives no number: a missing
 * measurement is not a failure of the agent.
 */
export function compose(components: Readonly<Record<string, number>>, rule: Composition): Composed {
  switch (rule.kind) {
    case 'weighted':
      return weighted(components, rule.weights)
    case 'product':
      return over(components, rule.of ?? Object.keys(components), (values) => values.reduce((a, b) => a * b, 1))
    case 'gate': {
      const names = Object.keys(rule.gates)
      const open = over(components, names, (values) =>
        Number(values.every((value, i) => value >= (rule.gates[names[i] ?? ''] ?? 0))),
      )
      if (!open.ok || open.reward === 0) return open
      return compose(components, rule.over)
    }
    case 'first_failing':
      return over(components, rule.order, (values) => values.find((value) => value < (rule.threshold ?? 1)) ?? 1)
  }
}

function weighted(components: Readonly<Record<string, number>>, weights: Readonly<Record<string, number>>): Composed {
  const names = Object.keys(weights)
  const total = names.reduce((sum, name) => sum + (weights[name] ?? 0), 0)
  if (!(total > 0)) return { ok: false, reason: 'The weights of the composition do not sum to a positive number.' }
  return over(components, names, (values) =>
    values.reduce((sum, value, i) => sum + (value * (weights[names[i] ?? ''] ?? 0)) / total, 0),
  )
}

function over(
  components: Readonly<Record<string, number>>,
  names: readonly string[],
  combine: (values: readonly number[]) => number,
): Composed {
  if (names.length === 0) return { ok: false, reason: 'There are no components to compose.' }
  const values: number[] = []
  for (const name of names) {
    const value = Object.hasOwn(components, name) ? components[name] : undefined
    if (value === undefined) return { ok: false, reason: `Component ${name} was not measured.` }
    if (!Number.isFinite(value)) return { ok: false, reason: `Component ${name} is ${value}.` }
    values.push(value)
  }
  return { ok: true, reward: combine(values) }
}
