import type { CallTally } from './call-tally.ts'
import type { Config, Id, Verdict } from '../core/index.ts'
import type { Proxy } from '../proxy/index.ts'
import type { LateVerdict, OutsideGroups } from '../rollout/index.ts'
import type { StoreReader } from '../trajectory/index.ts'

/** What `POST /runs` asks for: the arguments of `paddock run`. */
export interface RunRequest {
  /** Absolute path of a task or a directory of tasks, on the machine of the owner. */
  readonly tasks: string
  readonly environment: string
  readonly harness: string
  /** Names of the tasks to run; empty: all. */
  readonly only: readonly string[]
  /** Digests of tasks that are left out: those in quarantine. */
  readonly without: readonly string[]
  /** Rollouts per task; null: as configured. */
  readonly n: number | null
  /** Step of the training that the run is for; null: nobody said. */
  readonly step: number | null
  /** Programs that the tasks bring for the owner's machine may run there, as the owner. */
  readonly trustTasks: boolean
  readonly name: string | null
  /** Command line of the `shell` and `script` presets. */
  readonly command: string | null
}

/** A run that was taken in. */
export interface SubmittedRun {
  readonly runId: Id
}

/** What the control server is built on. It owns nothing of it. */
export interface ControlParts {
  readonly reader: Pick<StoreReader, 'recorder' | 'catalogue'>
  readonly proxy: Pick<
    Proxy,
    'openSession' | 'closeSession' | 'stats' | 'engineStatus' | 'pauseEngine' | 'resumeEngine' | 'updateWeights'
  >
  /** What the proxy's events add up to; whoever hears them notes them there. */
  readonly tally: CallTally
  /** Origin of the inference listener, for the base URLs of new sessions. */
  readonly inferenceOrigin: string
  /** Session policy of the configuration; a request's policy wins key by key. */
  readonly sessionDefaults: Config['session']
  /** The model of sessions whose request names none; null: as the harness asks. */
  readonly defaultModel: string | null
  /** Writes that are accepted and not yet durable; null where the store does not say. */
  readonly storeQueueDepth: (() => number) | null
  /** Appends what somebody says of a rollout later. Throws as `appendLate` of `rollout` does. */
  appendLate(rolloutId: Id, given: LateVerdict): Promise<Verdict>
  /** Groups of harnesses that run elsewhere. */
  readonly outside: Pick<OutsideGroups, 'openGroup' | 'openRound' | 'openRollout' | 'end' | 'cancel'>
  /** Starts a run and resolves when it has an id; null where this process runs none. */
  readonly submitRun: ((request: RunRequest) => Promise<SubmittedRun>) | null
  /** Stops a submitted run as Ctrl-C would. Throws `NOT_FOUND` for a run that is not going. */
  cancelRun(runId: Id): void
}
