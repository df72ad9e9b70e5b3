/**
 * What the viewer's pages get, JSON but for tokens. Types only: `web/` imports them. Times are milliseconds since the
 * epoch; a reward of null means that there is no number, never 0.
 */
import type { RunExtent } from './runs-contract.ts'
import type { Digest, Id, RolloutEnd, SamplingParams, Verdict, VerdictStatus } from '../../core/index.ts'

export type * from './compare-contract.ts'
export type * from './runs-contract.ts'
export type * from './search-contract.ts'
export type * from './story-contract.ts'
export type * from './tree-contract.ts'

/** A run in the list of runs. */
export interface RunLine {
  readonly id: Id
  readonly name: string
  readonly createdAt: number
}

/** A rollout in a table: at most 300 bytes. */
export interface RolloutLine {
  readonly id: Id
  readonly groupId: Id
  readonly task: string
  readonly slot: number
  readonly attempt: number
  readonly harness: string
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly end: RolloutEnd | null
  readonly status: VerdictStatus | null
  readonly reward: number | null
  readonly tainted: boolean
  /** Why it failed, one of {@link failureCauses}' words; null where it did not. */
  readonly cause: string | null
}

/** How many rollouts have each value of a column, of those that the other filters let through. */
export type Facets = Readonly<Record<FacetName, Readonly<Record<string, number>>>>

/** Columns that can be filtered by value. */
export type FacetName = 'end' | 'status' | 'task' | 'harness' | 'cause' | 'weights'

/** One page of a run's rollouts. */
export interface RolloutPage extends Part<RolloutLine> {
  readonly facets: Facets
  readonly read: RunExtent
  /** Where those stand that were asked for by id, in this order and under these filters. */
  readonly places: Readonly<Record<Id, number>>
}

/** Counts over rollouts. `effective`: ended by the agent itself, with a number, untainted. */
export interface Tally {
  readonly rollouts: number
  readonly running: number
  readonly effective: number
  /** Over effective rollouts; null where there is none. */
  readonly meanReward: number | null
  /** Over all rollouts that have a number; null where there is none. */
  readonly meanOfAll: number | null
}

/** A group in a run. */
export interface GroupLine extends Tally {
  readonly id: Id
  readonly task: string
  /** Standard deviation of effective rewards (population); null below two. 0: nothing to learn from. */
  readonly spread: number | null
}

/** One cause of failure: how often, and one rollout to look at. */
export interface FailureLine {
  readonly cause: string
  /** `agent`: its own fault, may be a 0. `infrastructure`: never a reward. `verdict`: ran, and was scored 0 or not at all. */
  readonly kind: 'agent' | 'infrastructure' | 'verdict'
  readonly count: number
  readonly example: Id
  /** What the example says of it, one line. */
  readonly detail: string
}

/** What a page of a run asks for again and again, to follow it. */
export interface RunPulse extends RunExtent {
  readonly running: number
}

/** What a page of a rollout asks for again and again. */
export interface RolloutPulse {
  /** Another one: something was recorded since. */
  readonly mark: string
  readonly isRunning: boolean
}

/** The page of a run. */
export interface RunPage {
  readonly read: RunExtent
  readonly run: RunLine & { readonly config: unknown }
  readonly tally: Tally
  readonly failures: readonly FailureLine[]
  /** Effective rewards in ten equal bins from `least` to `most`. */
  readonly rewards: { readonly least: number; readonly most: number; readonly bins: readonly number[] }
}

/** A part of a list that grows with what is recorded. */
export interface Part<Line> {
  readonly total: number
  readonly rows: readonly Line[]
  /** What to give as `after` for the next part; null at the end. */
  readonly next: number | null
}

/** A member of a group. */
export interface MemberLine extends RolloutLine {
  /** What its number is made of, under the names of the page. */
  readonly components: readonly (number | null)[]
}

/** The page of a group: a part of its members side by side. */
export interface GroupPage extends Part<MemberLine> {
  readonly group: GroupLine & {
    readonly runId: Id
    readonly taskDigest: Digest
    readonly instruction: string
    /** The largest number among all members without its sign, at least 1. */
    readonly mostReward: number
  }
  /** Names of parts of numbers, at most 8. */
  readonly names: readonly string[]
}

/** A session in the page of its rollout. */
export interface SessionLine {
  readonly id: Id
  readonly role: string
  /** The policy that it belongs to, of several; absent: there is one. */
  readonly policy?: ShownPolicy
  readonly createdAt: number
}

export interface ShownPolicy {
  readonly name: string
  readonly trained: boolean
}

/** The page of a rollout. */
export interface RolloutDetail {
  readonly rollout: RolloutLine & {
    readonly runId: Id
    readonly endDetail: string
    readonly taints: readonly string[]
    readonly labels: Readonly<Record<string, string>>
  }
  readonly task: {
    readonly digest: Digest
    readonly name: string
    readonly environment: string
    readonly instruction: string
  }
  /** The verdict in force first, the others after it, newest first. */
  readonly verdicts: readonly Verdict[]
  readonly sessions: readonly SessionLine[]
  /** Verdicts beyond those, the oldest. */
  readonly olderVerdicts: number
}

/** A call as the list of a session has it: no bodies. */
export interface CallLine {
  readonly seq: number
  readonly id: Id
  readonly class: string
  readonly strategy: string
  readonly startedAt: number
  readonly endedAt: number | null
  /** How it ended, one word or a code. */
  readonly outcome: string
  readonly delivery: string
  readonly promptTokens: number | null
  readonly promptNew: number
  readonly sampledTokens: number | null
  /** Of an answer that was given again from the session that this one goes on from. */
  readonly replayedTokens: number
  /** Sampled tokens that a trainer would get as trainable. */
  readonly trained: number
  readonly findings: number
  /** At most four. */
  readonly forks: readonly { readonly cause: string; readonly position: number; readonly tokensAffected: number }[]
  /** The beginning of its answer. */
  readonly preview: string
}

/** The page of a session. */
export interface SessionDetail {
  readonly id: Id
  readonly role: string
  /** As of a {@link SessionLine}. */
  readonly policy?: ShownPolicy
  readonly rolloutId: Id | null
  readonly closedAt: number | null
  readonly labels: Readonly<Record<string, string>>
  /** How many. */
  readonly calls: number
}

/** A part of the calls of a session. */
export interface CallsPage extends Part<CallLine> {
  /** Where the call stands whose number was asked for, else 0. */
  readonly at: number
}

/** A message as a reader wants it. Text beyond {@link maxTextChars} is cut, and said so by `cut`. */
export interface MessageView {
  readonly role: string
  readonly text: string
  readonly reasoning: string | null
  readonly toolCalls: readonly { readonly name: string; readonly argumentsText: string }[]
  readonly toolCallId: string | null
  /** Characters left out of `text`. */
  readonly cut: number
}

/** One call whole. */
export interface CallDetail extends CallLine {
  readonly dialect: string
  readonly streamed: boolean
  readonly asked: SamplingParams
  readonly used: SamplingParams
  readonly weightVersion: { readonly before: string | null; readonly after: string | null }
  /** Messages of its request that no earlier call of its class had. */
  readonly messages: readonly MessageView[]
  readonly choices: readonly {
    readonly index: number
    readonly finishReason: string | null
    readonly message: MessageView
    readonly sampledTokens: number | null
  }[]
  /** What the engine or Paddock said where it failed. */
  readonly error: string | null
  readonly findingsInFull: readonly string[]
  readonly forksInFull: readonly {
    readonly cause: string
    readonly fromCallSeq: number | null
    readonly position: number
    readonly expected: string
    readonly got: string
  }[]
}

/**
 * The head of a token reply (`application/vnd.paddock.tokens`): a little-endian uint32 length, this as JSON, then for
 * n tokens Int32 ids, Float32 logprobs (NaN: none) and Uint8 trained flags.
 */
export interface TokensHead {
  readonly choice: number
  readonly from: number
  readonly n: number
  readonly total: number
  readonly logprobKind: string
  readonly trained: boolean
  readonly maskReason: string | null
  /** Texts of the distinct ids of the reply; an id that is not here has no known text. */
  readonly texts: Readonly<Record<string, string>>
}

/** What the browser that asks may write. */
export interface AnnotateState {
  /** Whether anybody may here. */
  readonly on: boolean
  readonly may: boolean
  /** Name of the token under which it is recorded. */
  readonly name: string
}
