import type { Stage } from '../core/index.ts'
import type { Attempt } from '../envs/index.ts'
import type { BoxLabels, EgressAttempt } from '../sandbox/index.ts'
import type { Store } from '../trajectory/index.ts'
import type { Closing } from './closing.ts'
import type { RolloutLog } from './rollout-log.ts'
import type { Member, RunParts } from './run-parts.ts'
import { inStage } from './stage.ts'

/** What a stage of a rollout needs, whether the agent worked in this process or in an earlier one. */
export interface StageContext {
  readonly run: Pick<
    RunParts,
    'runId' | 'environment' | 'sandbox' | 'budgets' | 'judge' | 'signal' | 'clock' | 'newId'
  > & {
    readonly store: Pick<Store, 'catalogue' | 'recorder'>
  }
  readonly log: RolloutLog
  readonly onPhase: (stage: Stage, phase: 'start' | 'end') => void
}

/** One attempt while it runs. */
export interface AttemptContext extends StageContext {
  readonly run: RunParts
  readonly member: Member
  /** The same object in all contexts that the environment gets. */
  readonly attempt: Attempt
  /** Closed when the rollout is over, verdict included. */
  readonly ending: Closing
  /** Its job no longer keeps another one from beginning. May be called again. */
  readonly leave: () => void
}

/** Runs a stage of this rollout, with its events and progress. */
export function stage<T>(
  { run, log, onPhase }: StageContext,
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

export function boxLabels(run: Pick<RunParts, 'runId'>, log: RolloutLog): Omit<BoxLabels, 'role'> {
  return { run: run.runId, rollout: log.rolloutId }
}
