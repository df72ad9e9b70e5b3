import type { Config } from '../../config/index.ts'
import type { Id, Verdict } from '../../core/index.ts'
import type {
  Evals,
  HandOuts,
  LateVerdict,
  OutsideGroups,
  PolicyUpdates,
  TrainerEngines,
  Probes,
  Rewrites,
  Shelving,
  TrainerGroups,
  TrainerRuns,
  Verifications,
} from '../../rollout/index.ts'
import type { ScoreOrder, Scores } from '../../proxy/index.ts'
import type { ScoringRole, Store, StoreReader } from '../../trajectory/index.ts'

/** What the trainer's routes are built on. */
export interface RlParts {
  readonly reader: Pick<StoreReader, 'recorder' | 'catalogue'>
  /** Origin of the inference listener. */
  readonly inferenceOrigin: string
  readonly sessionDefaults: Config['session']
  /** The model of sessions whose run names none; null: as the harness asks. */
  readonly defaultModel: () => string | null
  appendLate(rolloutId: Id, given: LateVerdict): Promise<Verdict>
  readonly outside: Pick<OutsideGroups, 'openRollout' | 'end'>
  readonly groups: Pick<TrainerGroups, 'openRound' | 'cancel' | 'stopRollout'>
  readonly runs: TrainerRuns
  readonly handOuts: HandOuts
  readonly policy: PolicyUpdates
  readonly engines: Pick<TrainerEngines, 'put'>
  readonly evals: Pick<Evals, 'open' | 'wait' | 'cancel'>
  readonly trainer: Store['trainer']
  readonly changes: Store['changes']
  readonly shelving: Pick<Shelving, 'shelve' | 'resume' | 'stateOf' | 'ofRun'>
  readonly probes: Pick<Probes, 'probe'>
  readonly rewrites: Pick<Rewrites, 'rewrite'>
  readonly verifications: Pick<Verifications, 'verify' | 'look'>
  readonly scoreIds: (role: 'policy' | ScoringRole, policy: string | null, order: ScoreOrder) => Promise<Scores>
  /** False: a trainer names the engine later. */
  readonly hasEngine: () => boolean
  /** What the engine gives, as last learned. */
  readonly engine: {
    readonly name: string
    readonly logprobKind: string
    readonly gives: { readonly tokenIds: boolean; readonly logprobs: boolean }
  }
}
