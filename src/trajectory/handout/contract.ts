/** A settled round as a trainer gets it; names and shapes are those of the wire. */
import type { Digest, Doubtful, Id, LogprobKind } from '../../core/index.ts'
import type { DriftCause, MemberOut, OnCut, SettledMember } from '../contract/index.ts'
import type { MaskReason, MessageSpan } from '../rows-contract.ts'

/** Why a sampled token of a handed-out row does not train. */
export type HandedMaskReason =
  | MaskReason
  /** Sampled under a grammar, a forced tool, truncation or penalties: a trainer cannot recompute its probability. */
  | 'constrained'
  /** Its logprob is not of the distribution that it was sampled from. */
  | 'logprob_kind'
  /** Its row was used before. */
  | 'used'
  | UnusableReason

/** Why no token of a row trains. */
export type UnusableReason =
  | MemberOut
  /** It was cut, and its group masks such rollouts: its reward counts, and none of its tokens trains. */
  | 'cut'
  /** The run's selector left its rollout out: its reward counts, and none of its tokens trains. */
  | 'filtered'
  /** Its verdict was given on the files of the agent's own box, or its task was never validated: `paddock validate`, or the run's `trusts`. */
  | Doubtful
  /** Older than the run allows, or sampled by weights that an undone step had made. */
  | 'stale'

/** Tokens `[start, end)`. */
export type Place = readonly [start: number, end: number]

/** A member of the round. */
export interface HandedMember {
  readonly rollout_id: Id
  readonly slot: number
  readonly attempt: number
  /** Null: usable. */
  readonly out: MemberOut | null
  readonly end: SettledMember['end']
  readonly cut: OnCut | null
  readonly reward: number | null
  readonly status: string | null
  readonly sampled_tokens: number
  readonly harness: string
  readonly labels: Readonly<Record<string, string>>
  /** Findings of its calls, each once. */
  readonly findings: readonly string[]
  /** Why the run's selector left it out; null: it did not. Absent: the run selects nothing. */
  readonly filtered?: string | null
  /** The rollout that it goes on from, before the answer to that call; null: it began at the beginning. */
  readonly forked_from: { readonly rollout_id: Id; readonly call_id: Id } | null
}

/** A path through one rollout. */
export interface HandedRowHead {
  /** The same in each hand-out. */
  readonly row_id: string
  readonly rollout_id: Id
  readonly session_id: Id
  /** The policy that its session belongs to; absent: there is one. */
  readonly policy?: string
  /** Class of its last call: `main`, `subagent`. */
  readonly role: string
  /** Its calls, in order. */
  readonly node_ids: readonly Id[]
  /** True for the row whose last call began last, of its rollout's. */
  readonly is_last: boolean
  /** Why it does not go on from the row before. Null: it begins one, or is a sibling. */
  readonly fork_reason: DriftCause | null
  readonly end: SettledMember['end']
  /** What its group makes of a rollout that was cut; null where it was not. */
  readonly cut: OnCut | null
  readonly usable: boolean
  readonly unusable_reason: UnusableReason | null
  readonly reward: number | null
  /** 1/K of the K rows of its rollout that train a token; 0 where it trains none. */
  readonly weight: number
  /** Rows of its rollout that train a token. */
  readonly rows_of_rollout: number
  /** Tokens that train. */
  readonly trained_tokens_of: { readonly row: number; readonly rollout: number; readonly group: number }
  /** Tokens before the first sampled one. */
  readonly prompt_len: number
  readonly n_tokens: number
  /** Numbers of the weights that sampled `[start, end)`: the lowest and the highest that it may have been; -1 -1 of context. */
  readonly versions: readonly (readonly [start: number, end: number, lowest: number, highest: number])[]
  /** Of sampled tokens. Null: the engine's own default. */
  readonly temperatures: readonly (readonly [start: number, end: number, temperature: number | null])[]
  /** Sampled tokens, turn by turn. */
  readonly turn_spans: readonly Place[]
  /** Context behind the first turn. */
  readonly observation_spans: readonly Place[]
  /** Index of the node of each turn; null but in row mode `tree`. */
  readonly turn_nodes: readonly number[] | null
  /** Sampled tokens that do not train. */
  readonly mask_reasons: readonly (readonly [start: number, end: number, reason: HandedMaskReason])[]
  readonly logprob_kind: LogprobKind
  /** Whose its tokens are, without gaps. Absent: not asked for. */
  readonly message_spans?: readonly HandedSpan[]
}

/** Tokens `[start, end)` of a message, of the template, or of an answer. */
export interface HandedSpan extends Omit<MessageSpan, 'toolCallId'> {
  readonly tool_call_id: string | null
}

/** A row with its arrays, each of `n_tokens` values. */
export interface HandedRowWhole extends HandedRowHead {
  readonly token_ids: Int32Array
  /** 1: trains. */
  readonly loss_mask: Uint8Array
  /** 0 of context, NaN where it is not known. */
  readonly logprobs: Float32Array
  /** Of sampled tokens in nats, as far as their alternatives show it; NaN elsewhere. Absent: none is known. */
  readonly entropies?: Float32Array
  /** 1: what a tool said behind the first answer, without scaffold and without failures. Absent: not asked for. */
  readonly observation_mask?: Uint8Array
  /** Of all its ids but the first, by the reference model's engine; null: they could not be had. Absent: not asked for. */
  readonly ref_logprobs?: Float32Array | null
  /** The same by the teacher's. */
  readonly teacher_logprobs?: Float32Array | null
}

/** Whose logprobs of given ids rows may have beside the policy's own. */
export type ScoringRole = 'reference' | 'teacher'

/** What scored the rows of a round, or why nothing did. */
export interface HandedScores {
  readonly model: string | null
  /** Null where the engine names no weights. */
  readonly version: string | null
  readonly kind: LogprobKind | null
  readonly temperature: 1
  /** The engine's fingerprint in the store. */
  readonly engine: Digest | null
  /** Null: all rows have theirs. */
  readonly missing: string | null
}

/** What stands before the rows. */
export interface HandedRoundHead {
  readonly run_id: Id
  readonly group_id: Id
  readonly round: number
  readonly row_mode: RowMode
  /** Null: read only, nothing is owned. */
  readonly claim_id: Id | null
  /** Whose rows and rewards these are, by name (`default`: there is one), and its weights that were live when the round was claimed. */
  readonly policy: { readonly name: string; readonly version: number | null }
  readonly task: { readonly digest: Digest; readonly name: string; readonly instruction: string }
  /** It was stopped on rewards, which selects its members. */
  readonly outcome_stopped: boolean
  readonly labels: Readonly<Record<string, string>>
  readonly members: readonly HandedMember[]
  /** Of the roles that the run asked for; absent: none. */
  readonly scores?: Readonly<Partial<Record<ScoringRole, HandedScores>>>
  /** Parents before children; null but in row mode `tree`. */
  readonly nodes: readonly HandedNode[] | null
}

export interface HandedRound extends HandedRoundHead {
  readonly rows: readonly HandedRowWhole[]
}

/** `turns`: a row per call. `chains`: a row per append-only thread. `tree`: the same, with the nodes of the families that they belong to. */
export type RowMode = 'turns' | 'chains' | 'tree'

/** A run of answers that the same rollouts came through, of a family of rollouts that go on from one another. */
export interface HandedNode {
  /** Index of the node before it; null: it begins a family. */
  readonly parent: number | null
  /** Number of answers of the conversation before it. */
  readonly depth: number
  /** Those that came through it and had settled by then. */
  readonly rollouts: readonly Id[]
  /** How many of them have a number. */
  readonly count: number
  /** Mean of their numbers; null where none has one. */
  readonly value: number | null
}
