import { type Digest, PaddockError } from '../../core/index.ts'
import type { Selector, TaskChoice } from '../rows-contract.ts'
import { wrong } from './selector.ts'

/** Options by name, those that were left out at their defaults. Throws `CONFIG_INVALID` for what the selector does not take. */
export function selectorOptions(
  { name, options = {} }: Selector,
  given: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const names = Object.keys(options)
  const fix = names.length === 0 ? 'It has no options.' : `Its options: ${names.join(', ')}.`
  for (const [key, value] of Object.entries(given)) {
    const known = options[key]
    if (known === undefined) throw new PaddockError('CONFIG_INVALID', `Selector ${name} has no option ${key}.`, { fix })
    const { min = -Infinity, max = Infinity } = known
    if (!Number.isFinite(value) || value < min || value > max) {
      throw new PaddockError(
        'CONFIG_INVALID',
        `Selector ${name}: ${key} is ${value}, and must be from ${min} to ${max}.`,
      )
    }
  }
  return Object.fromEntries(names.map((key) => [key, given[key] ?? options[key]?.default ?? 0]))
}

/**
 * The tasks that a selector chooses, in its order. Throws `SELECTOR_INVALID` where it throws, names what is no candidate or
 * one twice, or chooses none or too many.
 */
export function chooseTasks(selector: Selector, choice: TaskChoice): readonly Digest[] {
  if (selector.choose === undefined) throw wrong(selector, 'it chooses no tasks')
  let digests: unknown
  try {
    digests = selector.choose(choice)
  } catch (cause) {
    throw wrong(selector, `it threw: ${String(cause)}`, cause)
  }
  if (!Array.isArray(digests)) throw wrong(selector, '`choose` must return a list of digests')
  const known = new Set(choice.tasks.map(({ task }) => task.digest))
  const chosen = new Set<Digest>()
  for (const digest of digests) {
    if (!known.has(digest)) throw wrong(selector, `it names ${String(digest)}, which is no task that it may choose`)
    if (chosen.has(digest)) throw wrong(selector, `it names ${String(digest)} twice`)
    chosen.add(digest)
  }
  if (chosen.size === 0) throw wrong(selector, 'it chooses none of the tasks')
  if (chosen.size > choice.count)
    throw wrong(selector, `it chooses ${chosen.size} tasks, and was asked for ${choice.count}`)
  return [...chosen]
}
