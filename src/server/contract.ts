import type { Config, Id } from '../core/index.ts'
import type { Proxy } from '../proxy/index.ts'
import type { StoreReader } from '../trajectory/index.ts'

/** What `POST /runs` asks for: the arguments of `paddock run`. */
export interface RunRequest {
  /** Absolute path of a task or a directory of tasks, on the machine of the owner. */
  readonly tasks: string
  readonly environment: string
  readonly harness: string
  /** Names of the tasks to run; empty: all. */
  readonly only: readonly string[]
  /** Rollouts per task; null: as configured. */
  readonly n: number | null
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
  readonly proxy: Pick<Proxy, 'openSession' | 'closeSession' | 'stats'>
  /** Origin of the inference listener, for the base URLs of new sessions. */
  readonly inferenceOrigin: string
  /** Session policy of the configuration; a request's policy wins key by key. */
  readonly sessionDefaults: Config['session']
  /** The model of sessions whose request names none; null: as the harness asks. */
  readonly defaultModel: string | null
  /** Writes that are accepted and not yet durable; null where the store does not say. */
  readonly storeQueueDepth: (() => number) | null
  /** Starts a run and resolves when it has an id; null where this process runs none. */
  readonly submitRun: ((request: RunRequest) => Promise<SubmittedRun>) | null
  /** Stops a submitted run as Ctrl-C would. Throws `NOT_FOUND` for a run that is not going. */
  cancelRun(runId: Id): void
}
