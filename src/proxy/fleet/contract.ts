import type { Adapter } from '../engines/adapters.ts'
import type { CacheAtUpdate, EngineOrder } from '../engines/control.ts'

/** How replicas are watched and chosen. Milliseconds unless the name says otherwise. */
export interface FleetLimits {
  /** Between two looks at each replica's health route. */
  readonly healthMs: number
  /** Failures in a row after which a replica gets no more calls. */
  readonly ejectAfter: number
  /** First pause of an ejected replica; it doubles with each failed return, up to `maxEjectMs`. */
  readonly ejectMs: number
  readonly maxEjectMs: number
  /**
   * A session leaves its replica when that one has more than this many times the mean number of running calls; see
   * {@link minimumLoad}.
   */
  readonly overload: number
}

export const defaultFleetLimits: FleetLimits = {
  healthMs: 5000,
  ejectAfter: 3,
  ejectMs: 1000,
  maxEjectMs: 60_000,
  overload: 1.5,
}

/** What becomes of running generations at a pause. */
export type PauseMode = 'drain' | 'keep' | 'abort-resubmit'

/** `POST /engine/pause`. */
export interface PauseOrder {
  readonly mode: PauseMode
  /** Mode `keep`: what becomes of the KV cache of frozen generations. */
  readonly cache: CacheAtUpdate
  /** How long is waited for running generations; then everything goes on as before. */
  readonly timeoutMs: number
}

/** A pause that another process has asked of the same engines, which does what is to be done with them. */
export interface PauseElsewhere {
  /** Mode `keep`: what runs stands still in the engines. */
  readonly frozen: boolean
}

/** New weights that another process has brought to the same engines. */
export interface WeightsElsewhere {
  readonly version: string
  /** The LoRA adapter that they are. Absent: the server's own. */
  readonly adapter?: Adapter
  /** As in {@link WeightsOutcome}. */
  readonly cacheIsolated: boolean
}

/** `POST /engine/weights`. */
export interface WeightsOrder extends PauseOrder {
  readonly version: string
  /** Posted to each replica, one after another, between pause and resume. */
  readonly requests: readonly EngineOrder[]
  /**
   * They are a LoRA adapter beside the server's own weights: nothing is paused, what runs goes on under what it began with, and each replica
   * is given the adapter where it has a path and is not there. Absent: the server's own.
   */
  readonly adapter?: Adapter
}

/** Weights that there are. */
export interface LiveWeights {
  readonly version: string
  /** The LoRA adapter that they are. Absent: the server's own. */
  readonly adapter?: Adapter
}

/** How a replica stands. */
export interface ReplicaStatus {
  /** Without credentials. */
  readonly url: string
  /**
   * `serving`; `ejected`: failed too often, is looked at again later; `stale`: it missed a weight update;
   * `foreign`: it serves another model than the others; `draining`: it was taken out, and what runs on it goes on to its end.
   */
  readonly state: 'serving' | 'ejected' | 'stale' | 'foreign' | 'draining'
  readonly inFlight: number
  readonly connections: number
  readonly pending: number
  readonly requests: number
  readonly failures: number
  readonly retries: number
  readonly ejections: number
  /** Sessions whose KV cache is expected here. */
  readonly sessions: number
  readonly weightVersion: string | null
  /** The LoRA adapter that new calls name there. */
  readonly adapter: string | null
  readonly lastError: string | null
}

export interface FleetStatus {
  readonly replicas: readonly ReplicaStatus[]
  readonly paused: PauseMode | null
  /** In a pause of mode `keep`: what runs stands still in every replica that serves. */
  readonly frozen: boolean
  /** Calls that wait for the end of a pause. */
  readonly waiting: number
  /** The version of the last update through the control API. */
  readonly weightVersion: string | null
  /** The LoRA adapter that new calls name; null: none. */
  readonly adapter: string | null
  readonly weightUpdates: number
  readonly resubmitted: number
}

/** What a pause came to. */
export interface PauseOutcome {
  readonly mode: PauseMode
  /** Generations that were ended to be gone on with, that were waited for, and that stay frozen or running. */
  readonly interrupted: number
  readonly drained: number
  readonly kept: number
  readonly durationMs: number
}

/** The weights of a replica. */
export interface ReplicaWeights {
  readonly url: string
  readonly weightVersion: string | null
  /** True where the server says so itself, false where somebody's word is taken. */
  readonly told: boolean
  /** The LoRA adapter that they are, null: none. */
  readonly adapter: string | null
}

/** What a weight update came to. */
export interface WeightsOutcome extends PauseOutcome {
  readonly version: string
  readonly adapter?: Adapter
  readonly replicas: readonly ReplicaWeights[]
  /** Replicas that did not get the adapter, and get no calls before they have it. */
  readonly out: readonly { readonly url: string; readonly why: string }[]
  /** Every replica forgot the prefix cache of older weights, or requests carry a salt from now on. */
  readonly cacheIsolated: boolean
}

/** What happens to a fleet, as it happens. */
export type FleetEvent =
  | {
      readonly what: 'ejected' | 'readmitted' | 'stale' | 'foreign' | 'added' | 'removed' | 'adapter'
      readonly replica: string
      readonly detail: string
    }
  | { readonly what: 'retried' | 'distrusted' | 'changed'; readonly replica: string; readonly detail: string }
  | { readonly what: 'paused' | 'resumed' | 'weights'; readonly replica: null; readonly detail: string }
