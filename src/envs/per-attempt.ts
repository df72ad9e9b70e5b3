import type { Attempt } from './contract.ts'

/**
 * State that an environment keeps of each attempt by itself. Attempts at one task run at the same time, so what is kept by
 * task, or in a variable of the module, is shared between them; what is kept here is not, and goes with its attempt. It
 * stays on the host: what the verifier should know of it, `collect` puts into the artifacts.
 *
 * @param make - The state at the beginning; called when an attempt is asked for it first.
 * @returns The state of the attempt of a context.
 * @example
 * const guesses = perAttempt(() => ({ count: 0 }))
 * // in `run` of a tool: guesses(context).count += 1
 */
export function perAttempt<T>(make: () => T): (context: { readonly attempt: Attempt }) => T {
  const states = new WeakMap<Attempt, { readonly state: T }>()
  return ({ attempt }) => {
    const known = states.get(attempt)
    if (known !== undefined) return known.state
    const state = make()
    states.set(attempt, { state })
    return state
  }
}
