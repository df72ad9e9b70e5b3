import type { Clock, Digest, Id, IdMaker, RolloutEnd, Stage, Task, Verdict } from '../core/index.ts'
import type { Environment } from '../envs/index.ts'
import type { Proxy } from '../proxy/index.ts'
import type { KeepBounds, SandboxProvider } from '../sandbox/index.ts'
import type { SessionPolicy, SettledRound, Store } from '../trajectory/index.ts'
import type { GroupRequest } from './group/spec.ts'
import type { ChainSpec } from './chain/contract.ts'
import type { Harness } from './harnesses/contract.ts'
import type { FindRoleEngine } from './role-engine.ts'
import type { NodesOfRun } from './nodes/index.ts'
import type { NullLimits } from './group/null-limit.ts'
import type { VerifyElsewhere } from './verification/contract.ts'
import type { PolicyPause } from './policy-pause.ts'
import type { AtWeightUpdate, Shelving } from './shelving/index.ts'

/** Everything that a run needs. It owns none of these parts and closes none of them. */
export interface RunOptions {
  readonly store: Store
  readonly proxy: Proxy
  /** Origin of the proxy's inference listener, for harnesses on the host; null: a listener of the run's own on loopback. */
  readonly inferenceOrigin?: string | null
  /** Null only where neither the harness nor the environment needs a box. */
  readonly sandbox: SandboxProvider | null
  /** Null: bare tasks (see `bareTask`), nothing is set up and nothing is verified. */
  readonly environment: Environment | null
  readonly tasks: readonly Task[]
  readonly harness: Harness
  /** Harnesses of agents of tasks that need several, by name. Default: all agents are of {@link harness}. */
  readonly agentHarnesses?: Readonly<Record<string, Harness>>
  /** Model name that the harness is told. */
  readonly model: string
  /** Rollouts per task: the size of each group. Default 1. */
  readonly n?: number
  /** What else is asked of each group. Default: all members are waited for. */
  readonly group?: Omit<GroupRequest, 'n' | 'labels' | 'carry'>
  /** Its tasks are the links of a chain, in their order, and are worked on one after the other. Default: they are not. */
  readonly chain?: ChainSpec
  readonly runId?: Id
  /**
   * Goes on with the run `runId`, whose tasks, in their order, and options these are: what has ended stays, what is
   * unverified is verified, missing members run. Default: a new run.
   */
  readonly resume?: boolean
  /** What somebody asked for, as it was read; kept with the run for whoever goes on with it. JSON. */
  readonly request?: unknown
  readonly name?: string
  /** Same task, other wording: part of the group's identity. Default `default`. */
  readonly promptVariant?: string
  readonly policy?: Partial<SessionPolicy>
  /** Labels of each rollout and its sessions, beside those that Paddock gives. */
  readonly labels?: Readonly<Record<string, string>>
  readonly budgets?: Partial<StageBudgets>
  readonly limits?: Partial<WorkerLimits>
  /** Step of the training that these rollouts are for. Default: null, nobody said. */
  readonly trainingStep?: number | null
  /** The box of an agent is kept at every so many of its turns, as `snapshot` events tell. Default: never. */
  readonly snapshotEvery?: number | null
  /** So many of them outlive the run, until somebody removes them. Default: none. */
  readonly keepSnapshots?: KeepBounds
  /** Whoever pauses the engine for an update of the policy holds the agents by it. */
  readonly policyPause?: PolicyPause
  /** The engine that judges of verifiers are asked at, on the record. Default: none. */
  readonly judge?: FindRoleEngine | null
  /** What simulates the users of its tasks. Default: nothing, and only recorded users are there. */
  readonly userEngine?: FindRoleEngine | null
  /** Whoever puts agents aside knows them by it. */
  readonly shelving?: Shelving
  /** What becomes of half-done rollouts at an update of the weights; `shelve` needs `shelving`. Default `continue`. */
  readonly atWeightUpdate?: AtWeightUpdate
  /** Further attempts at a slot whose attempt ended as `infra`. Default 2. */
  readonly infraRetries?: number
  /**
   * Stops the run once 20 rollouts have ended, or all of a smaller run, and a larger share of them has no number: from 0 to 1. None begins then,
   * those under way end, and the run throws `RUN_NULL_SHARE`. Default: that of the recorded run, else no limit.
   */
  readonly maxNullShare?: number
  /** Limits that others note endings in too. Default: those of this run alone. */
  readonly nullLimits?: NullLimits
  /** Nodes that do its rollouts too. Default: none. */
  readonly nodes?: NodesOfRun
  /** Labels that whoever does its rollouts has to have. Default: none. */
  readonly needs?: readonly string[]
  /** Verifies what agents of earlier processes, or of nodes, left. Default: that is done here. */
  readonly elsewhere?: VerifyElsewhere | null
  /** False: all of its rollouts are left to nodes. Default true. */
  readonly doneHere?: boolean
  /** Control URL of the scripted engine, to which the environment's scripts are posted before the run; null for real engines. */
  readonly scriptedEngine?: { readonly control: string } | null
  /** Ctrl-C: stops admission, ends agents, keeps records, removes boxes. */
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: RunProgress) => void
  readonly clock?: Clock
  readonly newId?: IdMaker
}

/**
 * Time of each stage in milliseconds. `agent` counts on the agent's own clock: neither waiting for a slot nor waiting for
 * the model. Where a task has a budget of its own for agent or verification, the shorter one holds.
 */
export interface StageBudgets {
  readonly bootMs: number
  readonly setupMs: number
  readonly agentMs: number
  readonly collectMs: number
  readonly verifyMs: number
  /** Upper bound of the agent stage by the wall, whatever the model's share. */
  readonly agentWallMs: number
}

/** How many rollouts may be in a stage at once. */
export interface WorkerLimits {
  readonly boot: number
  readonly agent: number
  readonly verify: number
}

export type RunProgress =
  | { readonly type: 'run'; readonly runId: Id; readonly rollouts: number }
  | { readonly type: 'note'; readonly line: string }
  | {
      readonly type: 'stage'
      readonly rolloutId: Id
      readonly task: string
      readonly slot: number
      readonly attempt: number
      readonly stage: Stage
      readonly phase: 'start' | 'end'
    }
  /** Parts of the reward that a rollout which goes on has come to. */
  | { readonly type: 'reward'; readonly rolloutId: Id; readonly parts: Readonly<Record<string, number>> }
  | { readonly type: 'ended'; readonly rollout: RolloutSummary }

/** One attempt, ended. */
export interface RolloutSummary {
  readonly rolloutId: Id
  readonly groupId: Id
  readonly task: { readonly name: string; readonly digest: Digest }
  readonly slot: number
  readonly attempt: number
  readonly harness: string
  readonly end: RolloutEnd
  readonly detail: string
  /** Null where nothing was verified. */
  readonly verdict: Verdict | null
  /** True: its agent was done and its work is kept, and it has no verdict and no end until that is verified. */
  readonly unverified: boolean
  readonly taints: readonly string[]
  /** Share of tool results that say nothing. Absent: there are few, or none. */
  readonly emptyToolResults?: number
  readonly calls: number
  readonly sampledTokens: number
  /** From leaving the queue to the end. */
  readonly durationMs: number
  /** The agent's own clock. */
  readonly agentMs: number
  /** True when a further attempt at the same slot followed. */
  readonly retried: boolean
}

/** Statistics of a group by rollout, never by row. Only scored, untainted rollouts have a reward here. */
export interface GroupSummary {
  readonly groupId: Id
  readonly task: { readonly name: string; readonly digest: Digest }
  readonly promptVariant: string
  /** Slots, whatever became of them. */
  readonly size: number
  readonly rewards: readonly number[]
  /** Population mean and standard deviation of `rewards`; null without any. */
  readonly mean: number | null
  readonly deviation: number | null
  readonly ends: Readonly<Partial<Record<RolloutEnd, number>>>
  /** What it settled to, with the members that count and those that do not; null where the run was cancelled before. */
  readonly settled: SettledRound | null
}

/** What came of trying all tasks once, as often as every one of them was tried with a reward. */
export interface RepeatSummary {
  readonly repeats: number
  /** Tasks with a reward in every repeat; the others are left out. */
  readonly tasks: number
  /** Mean reward, and what the repeats' own means are: population standard deviation, lowest, highest. */
  readonly mean: number
  readonly deviation: number
  readonly lowest: number
  readonly highest: number
  /** Tasks whose reward is not the same in all repeats. */
  readonly flips: number
}

export interface RunSummary {
  readonly runId: Id
  readonly cancelled: boolean
  /** Every attempt, by task, slot, attempt. */
  readonly rollouts: readonly RolloutSummary[]
  readonly groups: readonly GroupSummary[]
  /** Null where no task was tried twice. */
  readonly repeats: RepeatSummary | null
  /** What could not be cleaned up; the next sweep removes it. */
  readonly leftovers: readonly string[]
}
