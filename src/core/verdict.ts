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

/** A verdict on one rollout. Appended, never changed: a correction `supersedes` an earlier one. */
export type Verdict = VerdictFacts &
  (
    | { readonly status: 'scored' | 'hacked'; readonly reward: number }
    | {
        readonly status: Exclude<VerdictStatus, 'scored' | 'hacked'>
        readonly reward: null
        /** Why there is no number. */
        readonly reason: string
      }
  )

/** Something that was taken out of an agent's box, by its content. */
export interface StoredArtifact {
  /** In the box; below `/.paddock`, what the host noted. */
  readonly path: string
  readonly sha256: Digest
  readonly sizeBytes: number
  /** Name of the part that it was taken after, of a task of several. */
  readonly step?: string
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
  /** `separate`: fresh box that the agent never touched; `shared`: agent's own filesystem; `host`: rule on recorded data. */
  readonly trust: 'separate' | 'shared' | 'host'
  /** Judge cost in tokens, zero elsewhere. */
  readonly costTokens: number
  readonly supersedes: Id | null
}
