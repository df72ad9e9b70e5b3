/** The life of a group: what was asked for, its rounds, their slots, and what they settled to. */
import type { Digest, Id, RolloutEnd, VerdictStatus } from '../../core/index.ts'
import type { Injection } from './session.ts'

/** Ends that cut an agent off although nothing failed. */
export type CutEnd = 'horizon' | 'budget' | 'context_overflow' | 'agent_timeout'

/**
 * What a cut rollout is worth. `verify`: the state is scored as it is (without an answered call: no number); `zero`: reward 0;
 * `mask`: as `verify`, its reward counts in its group, and none of its tokens trains; `null`: no number.
 */
export const onCuts = ['verify', 'zero', 'mask', 'null'] as const
export type OnCut = (typeof onCuts)[number]

/**
 * How a fork comes to where its parent stood. `replay`: the harness is started anew in a fresh box, and answered as the parent's was up
 * to that call; its tools really run again. `state`: the box is a copy of the parent's at that call, and the harness is given its
 * messages. `graft`: in such a box the harness resumes its own session, and what it says of the past gives way to what was recorded.
 */
export type ForkWay = 'replay' | 'state' | 'graft'

/** Where the members of a group go on from: another rollout, before the answer to a call of its agent. */
export interface ForkFrom {
  readonly rolloutId: Id
  readonly callId: Id
  readonly way: ForkWay
  /** What becomes of a member whose harness asks something else on the way: it ends as `infra`, or goes its own way from there. */
  readonly onDivergence: 'refuse' | 'branch'
}

/** What is asked of one round of a group. */
export interface GroupSpec {
  /** Members wanted with a number. */
  readonly n: number
  /** Slots opened beyond `n` at the start. */
  readonly over: number
  /** Below so many usable members the round settles as `failed`. */
  readonly minUsable: number
  /**
   * When the others are stopped. `usable`: as soon as so many members are usable. `any_pass`: as soon as one that is has a
   * reward of 1 or more; `variance`: as soon as two have different rewards; both only with `minUsable` usable members.
   * `deadline`: nobody is stopped before it.
   */
  readonly stopWhen:
    | { readonly kind: 'usable'; readonly count: number }
    | { readonly kind: 'any_pass' | 'variance' | 'deadline' }
  /** Members that go on when the round stops are not stopped: they are members of the next round, unless they go on after that too. */
  readonly carry: boolean
  /** Further slots that may be opened, in all, where members that ended are not usable. */
  readonly topUp: number
  /** From the opening of the round until whoever is not done is left out; null: never. */
  readonly deadlineMs: number | null
  readonly labels: Readonly<Record<string, string>>
  /** Model calls after which an agent is cut on purpose; null: none. */
  readonly horizon: number | null
  readonly onCut: Readonly<Record<CutEnd, OnCut>>
  /** Null: they begin at the beginning. */
  readonly fork: ForkFrom | null
  /** What its members' policy sees beside their harness's words, in the place of what is configured; behind a fork, besides what its parent saw. */
  readonly inject?: readonly Injection[]
  /** The library that its members find in their boxes, and leave one of their own. Absent: there is none. */
  readonly library?: GroupLibrary
}

/** Files that an agent left for later tasks. */
export interface GroupLibrary {
  /** Of the artifact; null: it is empty. */
  readonly sha256: Digest | null
  /** The rollout that left it; null: it is empty. */
  readonly from: Id | null
}

/** A place in a group, filled by one attempt after the other. */
export interface SlotRecord {
  readonly slot: number
  readonly round: number
  /** The job that fills it; of a slot that somebody outside fills, a name that nothing is queued under. */
  readonly jobId: Id
  /** Given by whoever opened it, so that opening may be repeated; null: nobody did. */
  readonly key: string | null
}

export interface RoundRecord {
  readonly groupId: Id
  readonly runId: Id
  /** From 0. */
  readonly round: number
  readonly spec: GroupSpec
}

/** A round as it stands. */
export interface RoundView extends RoundRecord {
  /** Since its opening, on the database's clock. */
  readonly ageMs: number
  /** Those that the round before left going on are among them, first. */
  readonly slots: readonly SlotRecord[]
  /** Null while it goes on. */
  readonly settled: SettledRound | null
}

/** Why a member has no part in its round's advantages. */
export type MemberOut = 'infra' | 'cancelled' | 'censored' | 'late' | 'tainted' | 'no_number'

export interface SettledMember {
  readonly rolloutId: Id
  readonly slot: number
  readonly attempt: number
  readonly end: RolloutEnd | null
  /** Null: usable. */
  readonly out: MemberOut | null
  readonly verdict: {
    readonly id: Id
    readonly status: VerdictStatus
    readonly reward: number | null
    /** Of policies that get another number. */
    readonly byPolicy?: Readonly<Record<string, number>>
  } | null
  readonly cut: OnCut | null
  readonly sampledTokens: number
  /** Calls that sampled something. Not in stores from before it was told, as with `weights`. */
  readonly turns?: number
  /** What the engine called the weights that sampled it, in the order in which they first did. */
  readonly weights?: readonly string[]
}

export type StoppedBy = GroupSpec['stopWhen']['kind'] | 'cancelled'

/** What a round came to. Written once; nothing changes it. */
export interface SettledRound {
  readonly groupId: Id
  readonly runId: Id
  readonly round: number
  readonly state: 'settled' | 'failed'
  /** What ended it before all members had; null: nothing did. */
  readonly stoppedBy: StoppedBy | null
  readonly members: readonly SettledMember[]
  readonly usable: number
  /** Members that were stopped under way, with what they had. */
  readonly censored: { readonly members: number; readonly sampledTokens: number }
  /** Members that went on, with what they had by then: they are in no list before the round that they end in. */
  readonly carried: { readonly members: number; readonly sampledTokens: number }
  /** Slots that were closed before an attempt began. */
  readonly neverBegan: number
  /** Policies that it is handed out for, each by itself. Absent: there is one, without a name. */
  readonly policies?: readonly string[]
}

/** What of a run's events is of its weights. */
export type PolicyEventKind = Exclude<Extract<RunEvent['kind'], `policy_${string}`>, 'policy_engines'>

/** Something that happened in a run, for whoever follows it. `seq` grows, and only within one database. */
export interface RunEvent {
  readonly seq: number
  readonly runId: Id
  readonly kind:
    | 'group_opened'
    | 'group_settled'
    | 'verdict_late'
    /** A trainer's process speaks for the run now. */
    | 'attached'
    /** A trainer is about to move weights, and nothing is sampled until it says what came of it. */
    | 'policy_pausing'
    /** They were not moved, and the old ones are there. */
    | 'policy_restored'
    /** Weights were announced as live. */
    | 'policy_live'
    /** A trainer named the replicas of the engine. */
    | 'policy_engines'
    /** Weights were not moved, and nobody knows which ones the engine has: it stays paused. */
    | 'policy_halted'
    /** Weights went live over groups that they make too old: the run's staleness is `report` from now on. */
    | 'gate_passed'
    /** The run's feed asks for nothing more until a trainer attaches: its groups fail, or its selector does. */
    | 'feed_stopped'
    /** A rollout that goes on has come so far; told of runs that asked for it. */
    | 'turn'
  readonly at: number
  /** JSON. */
  readonly data: Readonly<Record<string, unknown>>
}
