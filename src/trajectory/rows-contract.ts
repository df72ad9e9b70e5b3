/**
 * From a token tree to rows: what a trainer gets. Exporters see only these types and `core`.
 */
import type {
  CallClass,
  Digest,
  Event,
  Id,
  LogprobKind,
  PolicySpan,
  SamplingParams,
  Task,
  Verdict,
  VerdictStatus,
} from '../core/index.ts'
import type { DriftCause, GroupRecord, NullShare, RolloutView, SegmentOrigin, WireFault } from './contract/index.ts'

/** Where every sampled token goes: exactly one bucket (invariant I4). */
export type Bucket =
  | { readonly kind: 'trainable' }
  | { readonly kind: 'masked'; readonly reason: MaskReason }
  | { readonly kind: 'not_exported'; readonly reason: DropReason }

export type MaskReason =
  /** Trained in another row that shares this prefix. */
  | 'owned_elsewhere'
  /** The call's class is not selected for training. */
  | 'class'
  | 'missing_logprob'
  /** A logprob of its answer is no finite number: the forward pass that sampled it is broken. */
  | 'nan_logprob'
  | 'stop_cut'
  /** Its weights changed while it was sampled, at an unknown token or over the KV cache of older weights. */
  | 'mixed_weights'
  /** Context of a row although its own answer never reached the client. */
  | 'undelivered'
  | 'role'
  /** Its rollout was cut, and its group masks such rollouts. */
  | 'cut'
  /** Context of a row; the engine told it against the rules of its wire. */
  | WireFault

export type DropReason =
  /** Continuations that a trainer asked for, which no harness saw. */
  | 'probe'
  /** What a judge said: in this bucket whatever became of the rollout. */
  | 'judge'
  /** Said by the user of a task, who is simulated by a model. */
  | 'user_simulator'
  /** Sampled by a policy that is not trained: in this bucket whatever became of the rollout. */
  | 'frozen_policy'
  /** Sampled by another policy than the one that was asked for. */
  | 'other_policy'
  | 'verdict_null'
  | 'tainted'
  | 'rollout_unfinished'
  | 'superseded'
  | 'undelivered_sibling'
  | 'class'
  | 'role'
  | 'logprob_kind'
  | 'group_dropped'
  /** A row or rollout without a token to train. */
  | 'nothing_to_train'
  /** A usable member beyond the exact group size. */
  | 'group_surplus'
  /** A row beyond the one that stands for its rollout. */
  | 'row_surplus'
  | 'filtered'
  /** Its answer broke the rules of the wire. */
  | WireFault
  /** Known from the engine's usage alone: no id came. */
  | 'missing_ids'
  /** Asked for without what was injected, and nobody knows its prompt without it. */
  | 'clean_unknown'
  /** It came from elsewhere: no token of it was sampled here. */
  | 'imported'
  /** It was made of a recorded rollout by whoever put other words into it: no token of it was sampled so. */
  | 'rewritten'

/**
 * `as_sampled`: what the policy saw, its injections included (invariant I2). `clean`: without them, as the harness wrote it; what was
 * sampled behind one has no logprobs then, because none was made in that context.
 */
export type RowView = 'as_sampled' | 'clean'

/** One segment as it lies in a row. */
export interface RowSegment {
  readonly segmentId: Id
  readonly origin: SegmentOrigin
  readonly callId: Id | null
  readonly callClass: CallClass
  readonly choice: number | null
  /** Position in the row, tokens `[start, end)`. */
  readonly start: number
  readonly end: number
  readonly trained: boolean
  readonly maskReason: MaskReason | null
}

/** Whose tokens `[start, end)` of a row are. */
export interface MessageSpan {
  readonly start: number
  readonly end: number
  /** Of the message; null where it is nobody's or not known. */
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool' | null
  /**
   * `content`: words of a message; `scaffold`: what the template put between messages, the offered tools among it; `answer`: what a
   * model said; `unknown`: any of them.
   */
  readonly part: 'content' | 'scaffold' | 'answer' | 'unknown'
  /** Of a tool's words: the call that they answer. */
  readonly toolCallId: string | null
  readonly tool: string | null
  /** How that call went, where Paddock made it. */
  readonly status: 'ok' | 'error' | 'timeout' | 'infra' | null
}

/** A path as a trainer gets it. All arrays have shape [T]. */
export interface Row {
  /** `<rollout id>:<leaf segment id>`. */
  readonly id: string
  readonly rolloutId: Id
  readonly sessionId: Id
  /** The policy that its session belongs to; absent: there is one. */
  readonly policy?: string
  readonly groupId: Id
  readonly taskDigest: Digest
  readonly leafCallId: Id | null
  readonly tokens: Int32Array
  /** 1: sampled by the policy and to be trained. */
  readonly mask: Uint8Array
  /** 0 where mask is 0; NaN where the context is another than the one that was sampled in (view `clean`). */
  readonly logprobs: Float32Array
  readonly logprobKind: LogprobKind
  /** Tokens before the first sampled one. */
  readonly promptLength: number
  readonly segments: readonly RowSegment[]
  /** Tokens `[start, end)` that the harness did not write, of view `as_sampled`, as far as it is known. */
  readonly injected: readonly { readonly start: number; readonly end: number; readonly labels: readonly string[] }[]
  /** Some of its trained tokens were sampled in another context: view `clean`, behind an injection. */
  readonly offContext: boolean
  /** In row positions. */
  readonly policySpans: readonly PolicySpan[]
  /** Of the calls in the row, in order. */
  readonly sampling: readonly { readonly callId: Id; readonly params: SamplingParams }[]
  readonly finishReason: string | null
  readonly fingerprint: Digest | null
}

/** A rollout's rows with its verdict; what an exporter receives. */
export interface ExportRollout {
  readonly rollout: RolloutView
  readonly group: GroupRecord
  readonly taskName: string
  readonly environment: string
  readonly instruction: string
  /** The verdict in force; of one policy, where the query asks for that. */
  readonly verdict: Verdict | null
  /**
   * (reward - mean) / (sample standard deviation + 1e-6) over the group's exported rollouts, never over rows; 0 in a
   * group of one or of equal rewards (GRPO, arXiv 2402.03300 §4.1.2). Null without a reward.
   */
  readonly advantage: number | null
  readonly rows: readonly Row[]
  /** Weight of each row by the export's rule, same order. */
  readonly rowWeights: readonly number[]
  /** The conversation as messages per row, same order: JSON texts of chat messages, and the offered tools. */
  readonly conversations: readonly {
    readonly messages: readonly string[]
    readonly tools: string | null
    /** Images and other media of the messages, in order; the messages name them by path. */
    readonly media: readonly RowMedia[]
  }[]
  /** Whose the tokens of each row are, same order as `rows`, where the query asks for it. */
  readonly spans?: readonly (readonly MessageSpan[])[]
  /** The stored events of the rollout and its sessions, where the query asks for them. */
  readonly events?: readonly Event[]
  /** What the engine gave beside ids and logprobs, where the export was asked for it. */
  readonly sideChannels?: readonly RowSideChannel[]
  /** Entropies of sampled tokens, in nats, by `<call id>/<choice>`; NaN where one is not known. With the side channels only. */
  readonly entropies?: ReadonlyMap<string, Float32Array>
}

/** Alternatives or routed experts of one choice of a call, a file of the export. */
export interface RowSideChannel {
  readonly callId: Id
  readonly choice: number
  readonly what: 'top_logprobs' | 'entropies' | 'routed_experts'
  readonly encoding: 'json+zstd' | 'float32le' | 'npy' | 'int32le'
  /** Relative to the export's directory. */
  readonly path: string
  readonly sha256: Digest
  readonly sizeBytes: number
}

/** A medium of a conversation, a file of the export. */
export interface RowMedia {
  /** Relative to the export's directory. */
  readonly path: string
  readonly sha256: Digest
  /** As the client said: `image/png`. */
  readonly mime: string
  readonly sizeBytes: number
}

// --------------------------------------------------------------------------------------------------- selection

/**
 * How a rollout's reward is spread over its K rows that train something; a row that trains nothing weighs 0 (not the same as token ownership, which is always train-once):
 * - `full`: each row weighs 1;
 * - `1/K`: each row weighs 1/K;
 * - `per-token`: each row weighs (its trainable tokens) / (the rollout's trainable tokens);
 * - `first-owner`: the row that trains the rollout's first sampled token weighs 1, the others 0.
 */
export type WeightRule = 'full' | '1/K' | 'per-token' | 'first-owner'

/**
 * How a rollout of several rows is handed to a trainer that expects one:
 * - `longest`: the row with the most tokens; `last`: the row whose last call began last. The others are left out as
 *   `row_surplus`, and the row that stays trains whatever it holds whole;
 * - `split-advantage`: all rows stay. The trainer must take the `advantage` of each row instead of counting rows; the
 *   weight rule is `1/K` unless another is given.
 */
export type OneRowRule = 'longest' | 'last' | 'split-advantage'

/** A group as a selector sees it: its rollouts that nothing else leaves out, at least one. */
export interface SelectorGroup {
  readonly group: GroupRecord
  readonly task: Task
  readonly rollouts: readonly { readonly rollout: RolloutView; readonly verdict: Verdict | null }[]
}

/** A task that may be asked for, with what is remembered of it: counts as in `GET /rl/v1/tasks`, 0 where nothing is. */
export interface CandidateTask {
  readonly task: Task
  /** How often this feed has asked for it already, groups under way among them; 0 without a feed. */
  readonly asked: number
  readonly attempts: number
  /** Attempts with a reward. */
  readonly numbers: number
  /** Of `numbers`: with a reward of 1 or more. */
  readonly passed: number
  /** Of `numbers`; null without any. */
  readonly meanReward: number | null
  readonly nulls: number
  readonly infra: number
  /** Rows that a trainer used. */
  readonly used: number
}

export interface TaskChoice {
  /** By digest. Never empty. */
  readonly tasks: readonly CandidateTask[]
  /** How many are wanted at most. */
  readonly count: number
  /** Of the selector, each with its value. */
  readonly options: Readonly<Record<string, number>>
  /** In [0, 1). The only chance that a selector may use: the same seed and place give the same numbers. */
  readonly random: () => number
}

/** A number that a selector takes. */
export interface SelectorOption {
  readonly default: number
  readonly min?: number
  readonly max?: number
}

/** A plugin that chooses: rollouts of a group (`select`), tasks to ask for (`choose`), or both. Made by `defineSelector`. */
export interface Selector {
  /** Lower-case letters, digits, dashes. */
  readonly name: string
  readonly apiVersion: 1
  /** Semantic version of what it chooses; stands in the manifest. */
  readonly version: string
  /**
   * The ids that stay, perhaps with why the others do not. Pure: the same group gives the same ids, or an export or a hand-out
   * cannot be made again.
   */
  select?(group: SelectorGroup): readonly Id[] | { readonly keep: readonly Id[]; readonly reason: string }
  /**
   * Digests of one task or more, `count` at most, the most wanted first. Pure: it keeps nothing between two choices, so that a
   * feed goes on after a restart as if there had been none.
   */
  choose?(choice: TaskChoice): readonly Digest[]
  /** What `choose` takes, by name. */
  readonly options?: Readonly<Record<string, SelectorOption>>
}

/** What is selected for an export. Lists: any of; absent: everything. Stored as it is in the manifest. */
export interface SelectionQuery {
  readonly runIds?: readonly Id[]
  readonly groupIds?: readonly Id[]
  readonly rolloutIds?: readonly Id[]
  readonly taskDigests?: readonly Digest[]
  readonly environments?: readonly string[]
  readonly harnesses?: readonly string[]
  readonly splits?: readonly string[]
  /** What this policy sampled, with its rewards; of the others nothing is exported (`other_policy`). Default: of all. */
  readonly policy?: string
  readonly verdictStatuses?: readonly VerdictStatus[]
  /** Inclusive bounds; a rollout outside is dropped as `filtered`. */
  readonly minReward?: number
  readonly maxReward?: number
  /** Classes whose tokens are trained; default `main` and `subagent`. */
  readonly trainClasses?: readonly CallClass[]
  /** False: rows whose leaf call has a class that is not trained are left out (`class`). Default false. */
  readonly includeUntrainedRows?: boolean
  /**
   * Rows without a token to train are left out, and rollouts without such a row before groups are counted
   * (`nothing_to_train`). Default false; true in `rl` exports.
   */
  readonly trainedRowsOnly?: boolean
  /** An answer with a token that lacks its logprob is context and not trained (`missing_logprob`). Default false. */
  readonly wholeAnswersOnly?: boolean
  /** What becomes of rollouts with several rows. Default: all rows stay. */
  readonly oneRowPerRollout?: OneRowRule
  /** Default false: a rollout with a null verdict or none is dropped (`verdict_null`). */
  readonly includeNullVerdicts?: boolean
  /** Default false: dropped as `tainted`. */
  readonly includeTainted?: boolean
  /** Default false: a rollout without an end, or ended as `infra` or `cancelled`, is dropped (`rollout_unfinished`). */
  readonly includeUnfinished?: boolean
  /** Default false: rollouts that were imported are dropped (`imported`). True in formats of messages that are not for `rl`. */
  readonly includeImported?: boolean
  /** Default `as_sampled`. Formats for `rl` refuse `clean`. */
  readonly view?: RowView
  /** Whose the tokens of each row are. Default false. */
  readonly includeSpans?: boolean
  /** The stored events of each rollout come with it. Default false; true in `archive` exports. */
  readonly includeEvents?: boolean
  /** Chooses among the usable rollouts of each group; those that it does not name are dropped as `filtered`. Default: all stay. */
  readonly selector?: Selector
  /** Groups with fewer rollouts left are dropped whole (`group_dropped`). Counts rollouts, not rows. Default 1. */
  readonly minGroupSize?: number
  /**
   * Each group has this many rollouts: groups with fewer usable ones are dropped whole (`group_dropped`), of larger
   * ones the first by slot stay (`group_surplus`). `limit` then leaves out whole groups.
   */
  readonly exactGroupSize?: number
  /** Drops groups whose rollouts all have the same reward (`group_dropped`). Default false. */
  readonly dropZeroVariance?: boolean
  /** Answers of mixed weights are context and not trained (`mixed_weights`). Default false; true in `rl` exports. */
  readonly maskMixedWeights?: boolean
  /** Default `full`; `1/K` with `oneRowPerRollout: 'split-advantage'`. */
  readonly weightRule?: WeightRule
  readonly limit?: number
}

/**
 * Sampled tokens of answers of `from` to `to` tokens, and how many of them train: whatever masks long answers more often than
 * short ones (answers across an update of the weights, say) selects by length, and shows here.
 */
export interface AnswerLengthShare {
  readonly from: number
  readonly to: number
  readonly answers: number
  readonly sampled: number
  readonly trainable: number
}

/** Counts of sampled tokens, each in exactly one bucket: `sampled` = trainable + all masked + all notExported. */
export interface TokenAccounting {
  readonly sampled: number
  readonly trainable: number
  readonly masked: Readonly<Partial<Record<MaskReason, number>>>
  readonly notExported: Readonly<Partial<Record<DropReason, number>>>
  /** From the shortest answers on. Tokens known from the usage alone are in none. */
  readonly byAnswerLength: readonly AnswerLengthShare[]
}

/** What a selection came to; complete once its iteration has ended. */
export interface SelectionSummary {
  readonly accounting: TokenAccounting
  readonly rollouts: {
    readonly selected: number
    readonly exported: number
    readonly dropped: readonly { readonly rolloutId: Id; readonly reason: DropReason; readonly detail: string }[]
  }
  readonly groups: {
    readonly selected: number
    readonly exported: number
    readonly dropped: readonly {
      readonly groupId: Id
      readonly reason: 'too_small' | 'zero_variance' | 'empty'
      readonly rollouts: number
    }[]
    /** How many members were asked for in exported groups, each number once; of a group of several rounds nobody says. */
    readonly asked?: readonly number[]
  }
  /** Over selected rollouts before any is dropped, but for imported and rewritten ones. */
  readonly nulls: NullShare
  /** Rows of exported rollouts that were left out, by reason. */
  readonly rowsLeftOut: Readonly<Partial<Record<DropReason, number>>>
  /** Drift over the selection's exported rollouts, calls that ended with an answer. */
  readonly drift: {
    readonly calls: number
    readonly forks: Readonly<Partial<Record<DriftCause, number>>>
    /** Calls whose prompt should have extended an earlier path, and those that did. */
    readonly shouldExtend: number
    readonly extended: number
    /** Calls without an integrity finding: echoed ids and counts agreed. */
    readonly exact: number
  }
}

/** Rollouts one after another in constant memory, and what became of the rest. */
export interface Selection extends AsyncIterable<ExportRollout> {
  /** Throws `EXPORT_REFUSED` before the iteration has ended. */
  summary(): SelectionSummary
}
