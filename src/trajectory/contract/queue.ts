/**
 * Jobs that nodes claim, do and hand in. What is leased is a **node session**, one per start of a node: its heartbeat
 * keeps all of its jobs. A claim gives (token, session), and a hand-in is accepted exactly while both match: an expired
 * session only permits somebody else to claim, and only that claim overwrites them. All times are the database's own.
 */
import type { Digest, Id, RolloutEnd, Verdict } from '../../core/index.ts'

/** One start of a node. A node that restarts joins with another id. */
export interface NodeSession {
  readonly id: Id
  /** The node's own name; sessions of one name follow each other. */
  readonly name: string
  /** What the node has: `gpu`, `gui`, `arch=arm64`. A job is given only to a node with all labels that it needs. */
  readonly labels: readonly string[]
}

/** `draining`: it claims no more. `gone`: over, or swept. */
export interface NodeSessionView extends NodeSession {
  readonly state: 'up' | 'draining' | 'gone'
}

/** What a job asks of a node. */
export interface JobNeeds {
  readonly labels: readonly string[]
  /** Of the capacity that a claim brings, per name: `{ places: 1, gpus: 1 }`. */
  readonly capacity: Readonly<Record<string, number>>
}

export interface NewJob {
  readonly id: Id
  /** JSON. Small: what is large is a blob. */
  readonly payload: unknown
  readonly runId?: Id | null
  /** Jobs of a group that has begun come before those of one that has not, and go where others of the group are. */
  readonly groupId?: Id | null
  /** Higher first. Default 0. */
  readonly priority?: number
  readonly needs?: Partial<JobNeeds>
  /** Attempts after which the job is `dead`; null: no bound. Default null. */
  readonly maxAttempts?: number | null
}

/** A claimed job. */
export interface Lease {
  readonly jobId: Id
  readonly topic: string
  readonly payload: unknown
  readonly runId: Id | null
  readonly groupId: Id | null
  readonly needs: JobNeeds
  readonly session: Id
  /** Counts claims and never goes back: it fences. */
  readonly token: number
  /** Counts tries from 1; a try that was given back by a draining node counts nothing. */
  readonly attempt: number
}

/** What says whose a job is. */
export type LeaseKey = Pick<Lease, 'jobId' | 'session' | 'token'>

export interface ClaimRequest {
  /** The same id again gives the same jobs of a topic, as far as the session still holds them: an answer may be lost. */
  readonly requestId: Id
  readonly limit: number
  /** What is free on the node, per name. Jobs are given as long as their needs fit. */
  readonly capacity: Readonly<Record<string, number>>
}

/** What a job made, for the catalogue: stored in the transaction that accepts the hand-in, or not at all. */
export interface HandedIn {
  readonly rolloutId: Id
  readonly taints: readonly string[]
  readonly verdict: Verdict | null
  readonly end: { readonly at: number; readonly end: RolloutEnd; readonly detail: string }
}

export interface HandIn {
  /** Names what is handed in. Repeating a hand-in with the same digest is success; with another it is refused. */
  readonly digest: Digest
  readonly made: HandedIn | null
  /** `again`: the job goes back for another attempt, and is `dead` where it has none left. */
  readonly next: 'done' | 'again'
}

export type HandInAnswer =
  | { readonly accepted: true; readonly repeated: boolean; readonly state: JobState }
  | { readonly accepted: false; readonly why: 'not_yours' | 'differs' | 'unknown_job' }

export type JobState = 'ready' | 'leased' | 'done' | 'dead' | 'cancelled'

export interface JobView {
  readonly id: Id
  readonly topic: string
  readonly runId: Id | null
  readonly groupId: Id | null
  readonly payload: unknown
  readonly state: JobState
  readonly token: number
  readonly attempt: number
  /** Of the last claim, until the next one or until the job was given back. */
  readonly session: Id | null
  readonly cancelAsked: boolean
}

/** Which jobs: those that fit all that is said. */
export interface JobFilter {
  readonly ids?: readonly Id[]
  readonly runId?: Id
  readonly groupId?: Id
}

export interface Swept {
  /** Sessions that are gone from now on. */
  readonly sessions: readonly Id[]
  /** Jobs that can be claimed again, and those that had no attempt left. */
  readonly ready: number
  readonly dead: number
  readonly cancelled: number
}

export interface Queue {
  /** A session that was begun, also one that is over; null: there was none of this id. */
  session(id: Id): Promise<NodeSessionView | null>
  /** Begins a session. Idempotent by id; a session that is gone stays gone (`NODE_SESSION_GONE`). */
  join(node: NodeSession, ttlMs: number): Promise<void>
  /**
   * Keeps a session, also one that is over time and not swept yet. `alive: false` where it is gone: the node stops its
   * work. `cancel`: jobs of the session that somebody wants stopped; what they have is handed in all the same.
   */
  beat(session: Id, ttlMs: number): Promise<{ readonly alive: boolean; readonly cancel: readonly Id[] }>
  /** The session claims no more and keeps what it has. */
  drain(session: Id): Promise<void>
  /** Ends a session in order: what it still holds goes back and burns no attempt. Nothing that it did and did not hand in is taken any more. */
  leave(session: Id): Promise<void>
  /** Sessions of which a hand-in would be taken: they hold a job, or held it last and are over time. */
  holders(): Promise<readonly NodeSessionView[]>
  /** Says that every session of a node is over, for who knows it: the owner of a store at its start. Swept at once. */
  retire(nodeName: string): Promise<Swept>

  /** Idempotent by id. */
  enqueue(topic: string, jobs: readonly NewJob[]): Promise<void>
  /** Throws `NODE_SESSION_GONE` for a session that is gone or draining. */
  claim(topic: string, session: Id, request: ClaimRequest): Promise<readonly Lease[]>
  /** One call, safe to repeat. See {@link HandIn}. Throws `STORE_CONFLICT` where the catalogue says otherwise. */
  handIn(lease: LeaseKey, what: HandIn): Promise<HandInAnswer>
  /** Gives a job back undone: `drain` burns no attempt, `failure` does. False where the lease no longer matches. */
  giveBack(lease: LeaseKey, why: 'drain' | 'failure', delayMs?: number): Promise<boolean>
  /** Waiting jobs are cancelled at once; those that a session holds are asked to stop, and end by their hand-in. */
  cancel(filter: JobFilter): Promise<{ readonly cancelled: number; readonly asked: number }>
  /** Sessions over time are gone, and their jobs can be claimed again; token and session of these stand until then. */
  sweep(): Promise<Swept>
  jobs(filter: JobFilter): Promise<readonly JobView[]>
  depth(topic: string): Promise<Readonly<Record<JobState, number>>>
  close(): Promise<void>
}
