import { type Digest, type Id, PaddockError } from '../../core/index.ts'
import { type CatalogueReader, isEval, type RunRecord, type SessionPolicy } from '../../trajectory/index.ts'
import type { AskedTask } from './asked-task.ts'

/** What is asked of an evaluation. JSON. */
export interface EvalAsked {
  /** Null: all tasks of the run. */
  readonly tasks: readonly AskedTask[] | null
  /** What all of them are of; null: any. */
  readonly split: string | null
  /** Rollouts of each task. */
  readonly k: number
  /** What sampling is held to, whatever the harness asks. */
  readonly pin: SessionPolicy['pin']
  /** The number of the weights that have to be live; null: whichever are. */
  readonly version: number | null
  /** The same of policies by name. */
  readonly versions?: Readonly<Record<string, number>>
  /** A rollout with this reward or more has passed. */
  readonly passReward: number
  /** From the opening of each task's group until whoever is not done is left out; null: never. */
  readonly deadlineMs: number | null
}

/** Weights by number and by what the engine calls them. */
export interface EvalVersion {
  readonly ordinal: number
  readonly label: string
}

/** Weights that are live; null: nobody had announced any. `versions`: by name, where policies have names; of several, `version` is null. */
export interface LiveWeights {
  readonly version: EvalVersion | null
  readonly versions?: Readonly<Record<string, EvalVersion | null>>
}

/** What an evaluation is, of weights that were live when it was opened, in the configuration of its run. Its groups are `<id>.<place of the task>`. JSON. */
export interface EvalRun extends LiveWeights {
  /** The trainer's run that asked for it. */
  readonly of: Id
  readonly asked: EvalAsked
  readonly tasks: readonly Digest[]
}

/** Null for a run that is no evaluation. */
export function evalOf(run: RunRecord): EvalRun | null {
  if (!isEval(run)) return null
  // Only Evals writes this key.
  return (run.config as { readonly eval: EvalRun }).eval
}

/** Evaluations that are under way, of all runs: they share an engine. */
export async function openEvals(catalogue: Pick<CatalogueReader, 'unfinishedRuns'>): Promise<readonly Id[]> {
  return (await catalogue.unfinishedRuns('evals')).map(({ id }) => id).toReversed()
}

/** Throws `RUN_IS_EVAL` for a run of which nothing may be trained. */
export function requireNoEval(run: RunRecord): void {
  if (isEval(run)) throw new PaddockError('RUN_IS_EVAL', `run ${run.id} is an evaluation`)
}
