import type { Doubtful } from '../../core/index.ts'
import type { AtWeightUpdate } from '../shelving/index.ts'
import type { Feed } from './feed.ts'
import type { RowMode, RunRecord, ScoringRole, SessionPolicy } from '../../trajectory/index.ts'

/** Rollouts that Paddock does: where, on what, for how long. */
export interface OwnRun {
  /** Absolute path of a task or a directory of tasks, on Paddock's machine. */
  readonly tasks: string
  readonly environment: string
  /** Command line of the `shell` and `script` presets. */
  readonly command: string | null
  /** Keys of `run.budgets` of the configuration. */
  readonly budgets: Readonly<Record<string, unknown>>
  /** Programs that the tasks bring for Paddock's machine may run there. */
  readonly trustTasks: boolean
  /** Labels that a node needs for its rollouts; absent: none. */
  readonly needs?: readonly string[]
}

/** What a trainer asked of its run, once, at its opening. JSON. */
export interface TrainerRun {
  /** `collect`: nothing of it is meant to train, so sampling is left as the harness asks. */
  readonly purpose: 'train' | 'collect'
  readonly rowMode: RowMode
  /** `mask`: answers that crossed an update are context only. */
  readonly mixed: 'train' | 'mask'
  /**
   * What becomes of rows of which a token is older than `max` versions. `report`: they train, and say how old they are.
   * `cancel`: they are unusable, and their rollouts are stopped. `gate`: there are none, because groups and weights wait.
   */
  readonly staleness: { readonly max: number; readonly mode: 'report' | 'cancel' | 'gate' }
  /** Groups that a step trains on; null: not said, and no gate. */
  readonly groupsPerStep: number | null
  /** Whether tokens sampled under a grammar, a forced tool or truncation train. */
  readonly constrained: 'train' | 'mask'
  /** Doubtful verdicts that train all the same; left out: none. */
  readonly trusts?: readonly Doubtful[]
  /** The model of its sessions; null: as the harness asks. */
  readonly model: string | null
  /** What sampling is held to in its sessions, whatever the harness asks. */
  readonly pin: SessionPolicy['pin']
  /** Groups that may be open or waiting for the trainer; null: no bound. */
  readonly capacity: number | null
  readonly harness: string
  /** What Paddock needs to do the rollouts itself; null: a harness of the trainer's own does them. */
  readonly own: OwnRun | null
  readonly labels: Readonly<Record<string, string>>
  /** Its events tell of each turn of its rollouts; absent: they do not. */
  readonly turnEvents?: boolean
  /** Policies that it trains, of several; absent: all that are trained. */
  readonly policies?: readonly string[]
  /** Of rollouts that Paddock does; absent: as the configuration says. */
  readonly atWeightUpdate?: AtWeightUpdate
  /** Whose logprobs its rows have beside the policy's own; absent: nobody's. */
  readonly score?: Readonly<Partial<Record<ScoringRole, boolean>>>
  /** Tokens that probes of its calls may sample; absent: {@link defaultProbeTokens}. */
  readonly probeTokens?: number
  /** The selector of rollouts that says which members of its rounds train; left out: all that are usable. */
  readonly select?: string
  /** The run stops when a larger share of its ended rollouts has no number, from 0 to 1; left out: it does not. */
  readonly maxNullShare?: number
  /** What it asks for by itself; left out: nothing. */
  readonly feed?: Feed
}

/** What probes of a run may sample where nothing else is said. */
export const defaultProbeTokens = 1_000_000

/** Of a run that was not opened by a trainer. */
export const defaultTrainerRun: TrainerRun = {
  purpose: 'train',
  rowMode: 'chains',
  mixed: 'train',
  staleness: { max: 1, mode: 'report' },
  groupsPerStep: null,
  constrained: 'mask',
  model: null,
  pin: {},
  capacity: null,
  harness: 'external',
  own: null,
  labels: {},
}

/** The trainer's part of a run's configuration. Any run may be handed out: one that no trainer opened has the defaults. */
export function trainerRunOf({ config }: RunRecord): TrainerRun {
  return ownTrainerRun(config) ?? defaultTrainerRun
}

function ownTrainerRun(config: unknown): TrainerRun | null {
  if (typeof config !== 'object' || config === null || !('trainer' in config)) return null
  // Only TrainerRuns writes this key.
  return config.trainer as TrainerRun
}
