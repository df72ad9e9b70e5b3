import type { Digest, Id } from './ids.ts'

/** The states a verdict can be in. Only `scored` and `hacked` carry a number. */
export type VerdictStatus =
  | 'scored'
  | 'hacked'
  | 'pending'
  | 'unscorable'
  | 'infra_error'
  | 'gold_error'
  | 'judge_failed'

/**
 * Who gave a status and reward, the lowest rank first. `verifier`: the task's own verifier, at the end of the rollout or by
 * `rescore`, or the comparison of its group. `late`: somebody from outside who looked at this one rollout: a person, a
 * slow judge, an outcome in the world. What is said late stands until somebody says otherwise late.
 */
export const verdictRanks = ['verifier', 'late'] as const
export type VerdictBy = (typeof verdictRanks)[number]

/** A verdict on one rollout. Appended, never changed: a correction `supersedes` an earlier one. */
export type Verdict = VerdictFacts &
  (
    | {
        readonly status: 'scored' | 'hacked'
        readonly reward: number
        /** Numbers that stand in the place of {@link reward} for what these policies sampled, by name. Absent: it is every policy's. */
        readonly byPolicy?: Readonly<Record<string, number>>
      }
    | {
        readonly status: Exclude<VerdictStatus, 'scored' | 'hacked'>
        readonly reward: null
        /** Why there is no number. */
        readonly reason: string
      }
  )

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

/** A verdict before it has a place in the log: what an environment's `verify` gives. */
export type VerdictDraft = DistributiveOmit<Verdict, 'id' | 'rolloutId' | 'at' | 'by' | 'supersedes'>

/** Something that was taken out of an agent's box, by its content. */
export interface StoredArtifact {
  /** In the box; below `/.paddock`, what the host noted. */
  readonly path: string
  readonly sha256: Digest
  readonly sizeBytes: number
  /** Name of the part that it was taken after, of a task of several. */
  readonly step?: string
}

/**
 * How far the agent was kept from what gave the verdict.
 * - `separate`: a fresh box that the agent never touched. `in_process`: such a box, in which its work ran in the process of the tests.
 * - `shared`: on the files of its own box. `unvalidated`: the same, and `paddock validate` never ran on the task.
 * - `host`: a rule on recorded data.
 */
export const trusts = ['separate', 'in_process', 'shared', 'unvalidated', 'host'] as const
export type Trust = (typeof trusts)[number]

/** Verdicts that an agent may have bought, so that they train only if they are named. */
export const doubtful = ['shared', 'unvalidated'] as const satisfies readonly Trust[]
export type Doubtful = (typeof doubtful)[number]

export function isDoubtful(trust: Trust): trust is Doubtful {
  return trust === 'shared' || trust === 'unvalidated'
}

/** What every verdict says besides its number. */
export interface VerdictFacts {
  readonly id: Id
  readonly rolloutId: Id
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Named parts of the reward, before composition. */
  readonly components: Readonly<Record<string, number>>
  /** Values on single calls (process reward). */
  readonly steps: readonly { readonly callId: Id; readonly value: number }[]
  /** Free facts for a reader: test output, diff, matched pattern. Bounded by the writer. */
  readonly evidence: string
  /** Stored artifacts by content, so that `rescore` can run a fixed verifier later. */
  readonly artifacts: readonly StoredArtifact[]
  readonly verifier: { readonly id: string; readonly version: string; readonly sha256: Digest }
  readonly trust: Trust
  /** Whose word the status and reward are; a verdict is replaced only by one of its own rank or a higher one. */
  readonly by: VerdictBy
  /** Name of the token under which it was given; absent: no person or program gave it over the control API or by `paddock verdict`. */
  readonly token?: string
  /** Judge cost in tokens, zero elsewhere. */
  readonly costTokens: number
  /** Sessions of role `judge` that hold what a judge was asked for it; absent: none was asked through Paddock. */
  readonly judgeSessions?: readonly Id[]
  readonly supersedes: Id | null
}
