/** What a trainer was handed, what it said of it, and the clock by which it is told: (incarnation, step). */
import type { Id } from '../../core/index.ts'
import type { PolicyEventKind, RunEvent, SettledRound } from './group.ts'

/** Who speaks for a run now. Every later request of an older incarnation is `FENCED`. */
export interface Attached {
  readonly incarnation: number
  readonly resumeStep: number | null
  /** Of earlier incarnations, by this attaching. */
  readonly undone: { readonly dispositions: number; readonly rows: number }
  /** Groups that will be handed out once more. */
  readonly again: readonly Id[]
  /** Groups whose weights are gone: nobody gets them. */
  readonly stale: readonly Id[]
}

/** A settled round that somebody has for a time. */
export interface RoundClaim {
  readonly id: Id
  readonly runId: Id
  readonly groupId: Id
  readonly round: number
  /** Whose rows they are; null: the run has one policy. */
  readonly policy: string | null
  readonly incarnation: number
  readonly consumer: string
  readonly leaseMs: number
  /** True where it was handed out before. */
  readonly again: boolean
  /** The weights that are live when it is claimed: what ages are counted from. Null: none were announced. */
  readonly liveOrdinal: number | null
  readonly settled: SettledRound
}

export interface ClaimAsked {
  /** Rounds of this policy alone. Null or absent: of any. */
  readonly policy?: string | null
  readonly incarnation: number
  readonly consumer: string
  readonly maxGroups: number
  readonly leaseMs: number
  /** Ids of the claims, as many as `maxGroups`. */
  readonly ids: readonly Id[]
}

/** A row as it is handed out. */
export interface HandedRow {
  readonly rowId: string
  /** The sampled segments that it would train. */
  readonly segmentIds: readonly Id[]
  /** What the engine called the weights that sampled them. */
  readonly labels: readonly string[]
}

/** What of a hand-out may not train. */
export interface NotOwned {
  /** Segments that rows of other rounds own. */
  readonly segmentIds: readonly Id[]
  /** Rows that were used before: their claim ran out before all of its rows were disposed of. */
  readonly usedRows: readonly string[]
}

export const dispositionOutcomes = ['used', 'stale', 'filtered', 'no_signal', 'truncated', 'skipped'] as const

/** What became of a row. */
export interface Disposition {
  readonly row: string
  readonly step: number
  /** 0 for the first use; using a row again is counted, not owned again. */
  readonly use: number
  readonly outcome: (typeof dispositionOutcomes)[number]
  /** Positions of the row, where not all of it was used. */
  readonly tokens: readonly [number, number] | null
  readonly advantage: number | null
  readonly rewardUsed: number | null
  readonly reason: string | null
}

/** With the claim that its row was handed out with. Claim ids are used once, so the id says who holds the round. */
export interface ClaimedDisposition extends Disposition {
  readonly claimId: Id
}

export interface Disposed {
  readonly accepted: number
  readonly repeated: number
  /** Claims that have a disposition for each of their rows by now. */
  readonly claimsDone: readonly Id[]
}

/** Numbers of a trainer's step. */
export interface StepMetrics {
  readonly incarnation: number
  readonly step: number
  readonly values: Readonly<Record<string, number>>
  /** How far the trainer's logprobs are from the recorded ones. Null: not said. */
  readonly mismatch: Readonly<Record<string, number>> | null
  /** True where a later incarnation went back behind this step. */
  readonly undone: boolean
}

/** Weights by number; the label is what the engine calls them, and no other weights of the run have it. */
export interface AnnouncedVersion {
  readonly ordinal: number
  readonly label: string
  readonly incarnation: number
  /** The trainer's step whose update made them. Null: the run started with them. */
  readonly step: number | null
  /** True where a later incarnation went back behind that step: no weights of its lineage are these. */
  readonly gone: boolean
  /** Whose weights they are; absent: the run has one policy. */
  readonly policy?: string
}

/** A LoRA adapter that weights are: what the engine calls it, and where it finds its files. Null: its trainer loads it. */
export interface NamedAdapter {
  readonly name: string
  readonly path: string | null
}

/** How a run's settled rounds stand. Rounds, but for `failed`. */
export interface HandoutCounts {
  readonly running: number
  readonly settledUnclaimed: number
  readonly claimed: number
  readonly done: number
  readonly stale: number
  readonly failed: number
}

/** Why a feed asks for nothing more. */
export interface FeedStop {
  /** `groups_failed`: one after the other. `selector_failed`: it threw, or chose what it may not. */
  readonly reason: 'groups_failed' | 'selector_failed'
  readonly message: string
}

/** Sampled tokens of members. */
export interface MemberLengths {
  readonly members: number
  /** Null where there are none. */
  readonly meanTokens: number | null
  readonly mostTokens: number | null
}

/** What early stops do to the lengths of a run's members. */
export interface RunLengths {
  /** Usable members of settled rounds. */
  readonly kept: MemberLengths
  /** Those that were stopped under way, with what they had. */
  readonly censored: MemberLengths
  /** All members of settled rounds by their length, the shortest first; without empty ones. */
  readonly byLength: readonly LengthBand[]
}

/** Members of more than `above` sampled tokens and at most `upTo`. */
export interface LengthBand {
  readonly above: number
  readonly upTo: number
  readonly members: number
  readonly usable: number
  /** Of which a row was used, and no later incarnation went back behind that. */
  readonly trained: number
}

/** A replica of the engine as a trainer names it. */
export interface NamedEngine {
  readonly url: string
  readonly role: 'rollout'
  /** The name of its bearer key in `engine.keys` of the configuration, never the key; null: it needs none. */
  readonly key_ref: string | null
}

/** What all replicas of an engine have in common; null: it is not told. */
export type EngineIdentity = Readonly<Record<string, string | number | null>>

/** The replicas that a trainer named last. */
export interface NamedEngines {
  readonly runId: Id
  readonly engines: readonly NamedEngine[]
  readonly identity: EngineIdentity
}

export type PolicyEvent = RunEvent & { readonly kind: PolicyEventKind }

/** A disposition as it stands. */
export interface StoredDisposition extends Disposition {
  readonly incarnation: number
  /** True where a later incarnation went back behind its step. */
  readonly undone: boolean
}

/** A row that was handed out. */
export interface HandedOutRow {
  readonly row: string
  readonly groupId: Id
  readonly round: number
  readonly labels: readonly string[]
  /** The weights that were live when it was claimed. Null: none were announced. */
  readonly liveOrdinal: number | null
}

/** How far a reader has come in what a run's trainer was handed and said: the number of the last line of each kind, 0 before the first. */
export interface TrainerPlace {
  readonly incarnations: number
  readonly versions: number
  readonly claims: number
  readonly dispositions: number
  readonly metrics: number
}

/** An attaching: what older incarnations said of steps behind `undoneFrom` is undone, their weights and metrics behind `resumeStep`. */
export interface WentBack {
  readonly incarnation: number
  readonly resumeStep: number | null
  readonly undoneFrom: number
}

/** A settled round that was claimed. */
export interface ClaimMade {
  /** Greater is later. */
  readonly n: number
  readonly id: Id
  readonly groupId: Id
  readonly round: number
  readonly liveOrdinal: number | null
}

/** What came behind a place, each kind in the order in which it came. */
export interface TrainerNews {
  readonly incarnations: readonly WentBack[]
  readonly versions: readonly Omit<AnnouncedVersion, 'gone'>[]
  readonly claims: readonly ClaimMade[]
  readonly dispositions: readonly Omit<StoredDisposition, 'undone'>[]
  /** Values of one step may come in several. */
  readonly metrics: readonly Omit<StepMetrics, 'undone'>[]
  /** Where to go on. */
  readonly place: TrainerPlace
  /** False where more stands behind the new place. */
  readonly isAll: boolean
}

/** Reads of what a trainer was handed and said; also usable while another process owns the store. */
export interface TrainerReader {
  /** By step and incarnation, oldest first. */
  metrics(runId: Id, o: { afterStep: number | null }): Promise<readonly StepMetrics[]>
  /** All of a run, as announced. */
  versions(runId: Id): Promise<readonly AnnouncedVersion[]>
  /** The numbers of announced weights, by what the engine called them; others are left out. */
  ordinals(runId: Id, labels: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** What became of a rollout's rows, by step. */
  dispositions(runId: Id, o: { rolloutId: Id }): Promise<readonly StoredDisposition[]>
  /** Rows of a rollout, each as it was handed out last. */
  handedRows(runId: Id, o: { rolloutId: Id }): Promise<readonly HandedOutRow[]>
  /** At most `limit` lines of each kind behind a place; null: from the beginning. Costs what it gives, however long the run is. */
  news(runId: Id, o: { after: TrainerPlace | null; limit: number }): Promise<TrainerNews>
  /** Rows that were handed out with a claim, by name: at most `limit` behind `after`. All of them or none are there; none come any more where it is over. */
  rowsOfClaim(
    claimId: Id,
    o: { after: string; limit: number },
  ): Promise<{ readonly rows: readonly Pick<HandedOutRow, 'row' | 'labels'>[]; readonly isOver: boolean }>
  /** What the engine called the weights that sampled rollouts, the oldest first; those without a handed-out row are left out. */
  handedLabels(rolloutIds: readonly Id[]): Promise<ReadonlyMap<Id, readonly string[]>>
}

/** The trainer's side of the catalogue. Each method is one transaction; leases are on the clock of the process that asks. */
export interface TrainerBook extends TrainerReader {
  /** Opens an incarnation; older ones are fenced and what they held goes back. Throws `NOT_FOUND`. */
  attach(runId: Id, o: { resumeStep: number | null; consumer: string | null }): Promise<Attached>
  /** The weights of `step` are safe. Throws `FENCED`. */
  checkpoint(runId: Id, o: { incarnation: number; step: number }): Promise<void>
  /** Leases settled rounds that nobody has, oldest first; none where there is none. Throws `FENCED`. */
  claim(runId: Id, asked: ClaimAsked): Promise<readonly RoundClaim[]>
  /** Milliseconds until the first lease of a run is over; null where nothing is claimed. */
  nextExpiry(runId: Id): Promise<number | null>
  /** Throws `FENCED`, `CLAIM_OVER`. */
  renew(claimId: Id, o: { incarnation: number; leaseMs: number }): Promise<void>
  /** Throws `FENCED`, `CLAIM_OVER`. Giving back what was given back is nothing. */
  giveBack(claimId: Id, o: { incarnation: number }): Promise<void>
  /** Throws `NOT_FOUND`, `CLAIM_OVER`. */
  claimed(claimId: Id): Promise<RoundClaim>
  /**
   * Hands the rows of a claimed round out: each segment that nobody owns is owned by its row from now on. Resolves with
   * what is masked because it is not theirs. Idempotent. Throws `CLAIM_OVER`.
   */
  handOut(claimId: Id, rows: readonly HandedRow[]): Promise<NotOwned>
  /**
   * All or none. Idempotent by (incarnation, step, row, use). A claim whose lease ran out counts until another consumer claims its round.
   * Throws `FENCED`, `CLAIM_OVER`, `STORE_CONFLICT`, `NOT_FOUND` for rows that did not come with their claim.
   */
  dispose(runId: Id, o: { incarnation: number; dispositions: readonly ClaimedDisposition[] }): Promise<Disposed>
  /** Values of one step are put together; later ones win. Throws `FENCED`. */
  putMetrics(runId: Id, metrics: Omit<StepMetrics, 'undone'>): Promise<void>
  /** Names weights. Idempotent. Throws `FENCED`, `STORE_CONFLICT` where the label or the number stands for other weights. */
  announce(
    runId: Id,
    version: {
      incarnation: number
      ordinal: number
      label: string
      /** The trainer's step whose update made them; null: the run starts with them. */
      step: number | null
      adapter?: NamedAdapter | null
      /** Null: the run has one policy. Numbers are of one policy, labels of the run. */
      policy?: string | null
    },
  ): Promise<void>
  /** Throws `FENCED` for an incarnation that does not speak for the run. */
  requireIncarnation(runId: Id, incarnation: number): Promise<void>
  /** Writes what happened to the policy of a run. */
  tell(
    runId: Id,
    kind: Exclude<PolicyEventKind, 'policy_live'> | 'policy_engines' | 'gate_passed' | 'feed_stopped' | 'turn',
    data: RunEvent['data'],
  ): Promise<void>
  /** True once a run's weights, or those of one policy of it, have gone live over groups that they made too old. */
  passedGate(runId: Id, policy?: string | null): Promise<boolean>
  /** How the last rounds ended that settled since a trainer attached, the newest first. */
  lastSettled(runId: Id, limit: number): Promise<readonly SettledRound['state'][]>
  /** Why the run's feed has stopped since a trainer attached; null: it has not. */
  feedStop(runId: Id): Promise<FeedStop | null>
  /** The LoRA adapters that weights of a run were announced as, oldest first. */
  adapters(runId: Id): Promise<readonly (NamedAdapter & { readonly label: string })[]>
  /** What was said of a run's weights last; of those of one policy where it is named. Null: nothing. */
  lastPolicy(runId: Id, policy?: string | null): Promise<PolicyEvent | null>
  /** The run of this data directory whose trainer moves weights: the last one that did and is not closed. Null: none. */
  policyOwner(): Promise<Id | null>
  /** The replicas that were named last, by a run of this data directory that is not closed. Null: by none. */
  engines(): Promise<NamedEngines | null>
  /** The last incarnation; null before the first attaching. */
  incarnation(runId: Id): Promise<number | null>
  /** Of all policies, or of one of several. */
  counts(runId: Id, policy?: string | null): Promise<HandoutCounts>
  /** Rounds that go on, or that have settled and wait to be disposed of: by whoever trains the policy, where one is named. */
  openRounds(runId: Id, policy?: string | null): Promise<readonly { readonly groupId: Id; readonly round: number }[]>
  /** Groups with a round that nobody gets any more: its weights are gone. */
  staleGroups(runId: Id): Promise<readonly Id[]>
  /** When a round settled among all others: greater is later. Null: it has not. */
  settleOrder(groupId: Id, round: number): Promise<number | null>
  /** Groups in which no round goes on, and members of the last one do. */
  carryingGroups(runId: Id): Promise<readonly Id[]>
  lengths(runId: Id): Promise<RunLengths>
  /** No more groups come. Idempotent. */
  closeRun(runId: Id): Promise<void>
  isClosed(runId: Id): Promise<boolean>
}
