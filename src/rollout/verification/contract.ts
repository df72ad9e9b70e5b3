import type { StoredArtifact, Task } from '../../core/index.ts'
import type { Environment } from '../../envs/index.ts'
import type { ToolCallFact, VerdictDraft } from '../../reward/index.ts'
import type { BoxLabels } from '../../sandbox/index.ts'
import type { LeaseKey, RolloutView } from '../../trajectory/index.ts'

/** The names of what an agent left. */
export interface StoredWork {
  readonly artifacts: readonly StoredArtifact[]
  /** Verified on all files of the agent's box. */
  readonly shared: boolean
  /** True where a limit ended the agent: of several steps, the later ones were never begun. */
  readonly cut: boolean
  /** Drafts on the first steps, made while the agent was at work. Left out: all steps are verified again. */
  readonly drafts?: readonly VerdictDraft[]
}

/** Why there is nothing to verify. */
export interface Missing {
  readonly missing: string
}

/** Stored work that is to be verified, and with what. All of it is JSON. */
export interface VerifyOrder {
  readonly task: Task
  /** The verifier's, as it is where the order was written. */
  readonly environment: { readonly name: string; readonly verifierVersion: string }
  readonly work: StoredWork
  /** Null: nobody recorded them. */
  readonly toolCalls: readonly ToolCallFact[] | null
  readonly budgetMs: number
  readonly labels: Partial<Pick<BoxLabels, 'run' | 'rollout'>>
}

/** What a verification came to. */
export type Verified = VerdictDraft | Missing

/** A verification as a node gets it. */
export interface NodeVerification {
  readonly lease: LeaseKey
  readonly order: VerifyOrder
  /** Where the task's own folder or file stands below the files that go with it; empty: it is these themselves. */
  readonly at: string
  /** Whoever asks verifies too: what this node cannot do is left to it. */
  readonly here: boolean
}

/** Work of a recorded rollout that is to be verified. */
export interface RecordedWork {
  readonly rollout: Pick<RolloutView, 'id' | 'runId'>
  readonly task: Task
  readonly environment: Environment
  readonly work: StoredWork
  /** Null: nobody recorded them. */
  readonly toolCalls: readonly ToolCallFact[] | null
}

/** Verifies recorded work on another machine. A fault is a draft without a number. Throws the signal's reason, `OWNER_STOPPING`. */
export type VerifyElsewhere = (one: RecordedWork, signal: AbortSignal) => Promise<Verified>
