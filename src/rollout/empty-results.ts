import type { EventBody } from '../core/index.ts'

/** A finding needs so many empty results, and so large a share of all. */
const fewest = 3
const leastShare = 0.5

/**
 * Counts results of tools that say nothing. An environment whose own back end is down answers without an error, again and
 * again: its rewards are then no work of the policy, and only this shows it.
 */
export class EmptyResults {
  #all = 0
  #empty = 0

  note(event: EventBody): void {
    if (event.kind !== 'tool_result') return
    this.#all += 1
    if (event.status === 'ok' && (event.images ?? []).length === 0 && isEmpty(event.result)) this.#empty += 1
  }

  /** Null: too few of them are empty to tell. */
  get share(): number | null {
    const share = this.#empty / this.#all
    return this.#empty >= fewest && share >= leastShare ? share : null
  }
}

/** No text, or JSON that holds no value. */
function isEmpty(result: string): boolean {
  const text = result.trim()
  if (text === '' || text === 'None' || text === 'undefined') return true
  if (!/^[[{"n]/.test(text)) return false
  try {
    return holdsNothing(JSON.parse(text))
  } catch {
    return false
  }
}

function holdsNothing(value: unknown): boolean {
  if (typeof value === 'string') return value.trim() === ''
  return value === null || (typeof value === 'object' && Object.values(value).every(holdsNothing))
}
