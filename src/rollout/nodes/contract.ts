import type { Digest, Id } from '../../core/index.ts'
import type { Adapter, PauseElsewhere, PauseOrder } from '../../proxy/index.ts'
import type { GroupRecord, GroupSpec, HandInAnswer, LeaseKey, RunRecord } from '../../trajectory/index.ts'

/** What all jobs of a run have in common, as a node needs it. */
export interface NodeOrder {
  readonly run: RunRecord
  /** What the run was asked for with, whole: budgets, sampling, group, command. Read by whoever wrote it. */
  readonly request: unknown
  readonly harness: { readonly name: string; readonly version: string }
  readonly environment: { readonly name: string; readonly verifierVersion: string }
  readonly trainingStep: number | null
}

/** A job as a node gets it. */
export interface NodeJob {
  readonly lease: LeaseKey
  readonly order: NodeOrder
  readonly group: GroupRecord
  readonly spec: GroupSpec
  readonly task: Digest
  readonly slot: number
  /** Of the slot: how often its job was claimed before. */
  readonly attempt: number
  /** Its place among the members of the run. */
  readonly place: number
  /** Rollouts whose records it goes on from, the oldest first. Each is given for as long as the lease holds. */
  readonly parents: readonly Id[]
}

/** A finished rollout of a job. */
export interface HandedRollout {
  readonly bytes: Uint8Array
  /** SHA-256 of the bytes. */
  readonly digest: Digest
  /** Code of what it failed of, for one that ended as `infra`; null: nobody knows. */
  readonly fault: string | null
}

/** Why a node shall stop a job. `cancelled`: what it has is handed in. `lost`: it is somebody else's. `over`: its run stopped; it is given back. */
export interface StopJob {
  readonly jobId: Id
  readonly why: 'cancelled' | 'lost' | 'over'
}

/** What holds for the engine, as a coordinator tells its nodes. */
export interface ToldWeights {
  /** Names what is told: another mark says something else. */
  readonly mark: string
  /** Generation waits; null: it goes on. */
  readonly paused: (PauseOrder & PauseElsewhere) | null
  /** The weights that are there; null: nobody has said any. */
  readonly version: string | null
  /** The LoRA adapter that they are, null: the server's own. */
  readonly adapter: Adapter | null
  readonly cacheIsolated: boolean
}

/** How nodes answered to what they were told. */
export interface NodesAnswered {
  readonly answered: number
  /** Whoever answered last; null: nobody did. */
  readonly slowest: { readonly node: string; readonly durationMs: number } | null
  /** Nodes that were passed over, whose jobs go to others: `lapsed`: their lease was over, `silent`: they lived and did not answer in time. */
  readonly passed: readonly { readonly node: string; readonly why: 'lapsed' | 'silent' }[]
}

/** What came of a hand-in. */
export type HandInResult = HandInAnswer & { readonly rolloutId: Id | null }
