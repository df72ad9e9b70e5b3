import type { Clock, Id, IdMaker, Task } from '../core/index.ts'
import type { Environment } from '../envs/index.ts'
import type { Proxy } from '../proxy/index.ts'
import type { BundleRef, ImageRef, KeepBounds, SandboxProvider } from '../sandbox/index.ts'
import type { ForkFrom, GroupLibrary, GroupRecord, GroupSpec, SessionPolicy, Store } from '../trajectory/index.ts'
import type { RunBudgets } from './budgets.ts'
import type { RunProgress } from './contract.ts'
import type { Gate } from './gate.ts'
import type { Harness } from './harnesses/contract.ts'
import type { FindRoleEngine } from './role-engine.ts'
import type { PolicyPause } from './policy-pause.ts'
import type { AtWeightUpdate, Shelving } from './shelving/index.ts'
import type { VerifyElsewhere } from './verification/contract.ts'
import type { VerifyPlaces } from './verification/verify-places.ts'

/** What all rollouts of a run share. */
export interface RunParts {
  readonly runId: Id
  readonly store: Store
  readonly proxy: Proxy
  readonly inferenceOrigin: string
  readonly sandbox: SandboxProvider | null
  /** Verifies what was left; null: that is done here. */
  readonly elsewhere: VerifyElsewhere | null
  readonly environment: Environment | null
  readonly harness: Harness
  /** The harness's program as a volume, null where it needs none. */
  readonly bundle: BundleRef | null
  /** Of agents whose harness is not {@link harness}, by name. */
  readonly agentHarnesses: Readonly<Record<string, { readonly harness: Harness; readonly bundle: BundleRef | null }>>
  readonly model: string
  readonly policy: Partial<SessionPolicy>
  /** Model calls after which agents are cut on purpose; null: none. The policy's budget is no higher. */
  readonly horizon: number | null
  readonly labels: Readonly<Record<string, string>>
  /** What its rollouts go on from; null: they begin at the beginning. */
  readonly fork: ForkFrom | null
  /** What its agents find of those of earlier tasks; null: no library is kept. */
  readonly library: GroupLibrary | null
  readonly budgets: RunBudgets
  readonly gates: Gates
  /** Turns from one snapshot of an agent's box to the next; null: none are taken. */
  readonly snapshotEvery: number | null
  /** Null: none of them outlives the run. */
  readonly keepSnapshots: KeepBounds | null
  /** See `RunOptions`. */
  readonly trainingStep: number | null
  readonly policyPause: PolicyPause | null
  /** Null: no judge is configured. */
  readonly judge: FindRoleEngine | null
  /** What simulates the users of its tasks; null: nothing does. */
  readonly userEngine: FindRoleEngine | null
  readonly shelving: Shelving | null
  readonly atWeightUpdate: AtWeightUpdate
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly newId: IdMaker
  readonly onProgress: (progress: RunProgress) => void
  /** Resolves with the task's image when it is there: made once per task, on nobody's budget. Null without boxes. */
  readonly imageReady: (task: Task) => Promise<ImageRef | null>
  /** What could not be closed. */
  readonly leftovers: string[]
}

export interface Gates {
  /** Rollouts that hold a box: those in the agent stage, and a few that are being made ready for it. */
  readonly live: Gate
  readonly boot: Gate
  readonly agent: Gate
  readonly verify: VerifyPlaces
}

/** A place in a group. */
export interface Member {
  readonly task: Task
  readonly group: GroupRecord
  readonly slot: number
  /** Of its round, where that is recorded in another store. */
  readonly spec?: GroupSpec
  /** The group settles after this time; null: it has no deadline. */
  readonly deadlineMs: number | null
  /** Its place among the members of the run: whoever is earlier goes first wherever places are few. */
  readonly order: number
}
