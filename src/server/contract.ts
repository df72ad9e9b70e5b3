import type { WorkTally } from './work-tally.ts'
import type { Config } from '../config/index.ts'
import type { Id, Verdict } from '../core/index.ts'
import type { OpenedSession, OpenSession, Proxy } from '../proxy/index.ts'
import type { EngineOverUpdates, LateVerdict, OutsideGroups, RescoreOptions } from '../rollout/index.ts'
import type { ArchiveState, BlobsState, Store } from '../trajectory/index.ts'
import type { NodeParts } from './nodes/index.ts'
import type { RlParts } from './rl/index.ts'
import type { ResumeRequest, RunRequest } from './run-request.ts'

/** A run that was accepted. */
export interface SubmittedRun {
  readonly runId: Id
}

/** Verifies rollouts that were found again. */
export type RescoreThem = (
  o: Required<Pick<RescoreOptions, 'dryRun' | 'parallel' | 'signal' | 'onResult'>>,
) => Promise<unknown>

/** What the control server is built on. It owns nothing of it. */
export interface ControlParts {
  readonly reader: Pick<Store, 'recorder' | 'catalogue'>
  readonly proxy: Pick<Proxy, 'openSession' | 'stats' | 'engineStatus' | 'engineHealth' | 'engineOf' | 'policies'>
  /** As those ask it who move weights. */
  readonly engine: Pick<EngineOverUpdates, 'pauseEngine' | 'resumeEngine' | 'updateWeights'>
  /** What calls and rollouts add up to; whoever hears of them notes them there. */
  readonly tally: WorkTally
  /** Origin of the inference listener, for the base URLs of new sessions. */
  readonly inferenceOrigin: string
  /** Session policy of the configuration; a request's policy wins key by key. */
  readonly sessionDefaults: Config['session']
  /** The model of sessions whose request names none; null: as the harness asks. */
  readonly defaultModel: () => string | null
  /** Writes that are accepted and not yet durable; null where the store does not say. */
  readonly storeQueueDepth: (() => number) | null
  /** How blobs stand that go to an object store; null: they stay in the data directory. */
  readonly blobsState: (() => BlobsState) | null
  /** How finished sessions stand that go to an archive; null: they stay in the log. */
  readonly archiveState: () => ArchiveState | null
  /** Appends what somebody says of a rollout later. Throws as `appendLate` of `rollout` does. */
  appendLate(rolloutId: Id, given: LateVerdict): Promise<Verdict>
  /** Groups of harnesses that run elsewhere. */
  readonly outside: Pick<OutsideGroups, 'openGroup' | 'openRound' | 'openRollout' | 'end' | 'cancel'>
  /** The trainer's side. */
  readonly rl: RlParts
  /** Nodes that do jobs of the runs here. */
  readonly nodes: NodeParts
  /** Finds rollouts and their environments, and resolves with what verifies them again. Throws `NOT_FOUND`, `ENVIRONMENT_*`. */
  rescore(rolloutIds: readonly Id[]): Promise<RescoreThem>
  /** Starts a run and resolves when it has an id. Throws what keeps it from beginning. */
  submitRun(request: RunRequest): Promise<SubmittedRun>
  /** Goes on with a recorded run, likewise. Throws `NOT_FOUND`, and `RUN_REFUSED` for one that cannot be gone on with. */
  resumeRun(asked: ResumeRequest): Promise<SubmittedRun>
  /** Opens a session that belongs to a rollout of its own, as `serve` does. Closing it ends the rollout. */
  openRecording(open: Omit<OpenSession, 'rolloutId'>): Promise<OpenedSession & { readonly rolloutId: Id }>
  /** Closes a session; one of {@link openRecording} ends its rollout. Throws `SESSION_UNKNOWN`. */
  closeSession(id: Id): Promise<void>
  /** Stops a submitted run as Ctrl-C would. Throws `NOT_FOUND` for a run that is not going. */
  cancelRun(runId: Id): void
}
