import type { Event } from '../../src/core/index.ts'

/** What became of an agent that was put aside, in order. */
export function shelvedOf(events: readonly Event[]): readonly string[] {
  return events.flatMap((event) => (event.kind === 'shelve' ? [`${event.phase} ${event.interrupted}`] : []))
}

/** The time between being put aside and going on. */
export function heldMs(events: readonly Event[]): number {
  return events.reduce((sum, event) => {
    if (event.kind !== 'shelve') return sum
    return event.phase === 'shelved' ? sum - event.at : sum + event.at
  }, 0)
}

/** Of the stage of the agent, by the wall. */
export function stageMs(events: readonly Event[]): number {
  const end = events.find((event) => event.kind === 'stage' && event.stage === 'agent' && event.phase === 'end')
  return end?.kind === 'stage' ? (end.durationMs ?? 0) : 0
}
