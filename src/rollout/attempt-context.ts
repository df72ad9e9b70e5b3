import type { Stage } from '../core/index.ts'
import type { BoxLabels, EgressAttempt } from '../sandbox/index.ts'
import type { Closing } from './closing.ts'
import type { RolloutLog } from './rollout-log.ts'
import type { Member, RunParts } from './run-parts.ts'
import { inStage } from './stage.ts'

/** One attempt while it runs. */
export interface AttemptContext {
  readonly run: RunParts
  readonly member: Member
  readonly log: RolloutLog
  readonly onPhase: (stage: Stage, phase: 'start' | 'end') => void
  /** Closed when the rollout is over, verdict included. */
  readonly ending: Closing
}

/** Runs a stage of this attempt, with its events and progress. */
export function stage<T>(
  { run, log, onPhase }: AttemptContext,
  name: Stage,
  budgetMs: number | null,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal, clock } = run
  return inStage({ stage: name, budgetMs, signal, clock, emit: log.emit, onPhase }, work)
}

/** Each try of a box to reach something is an event of its rollout. */
export function tellEgress(log: RolloutLog): (attempt: EgressAttempt) => void {
  return (attempt) => log.emit({ kind: 'egress', ...attempt })
}

export function boxLabels(run: RunParts, log: RolloutLog): Omit<BoxLabels, 'role'> {
  return { run: run.runId, rollout: log.rolloutId }
}
