/**
 * The store's contracts: what is remembered, and by whom. All async, all append-only: nothing here updates or deletes
 * a recorded fact; a correction is a new fact that `supersedes` an older one.
 *
 * - {@link Recorder}: the log of sessions, calls, segments, events. SQLite only, one writer thread.
 * - {@link Catalogue}: tasks, runs, groups, rollouts, verdicts, fingerprints, token texts.
 * - {@link Queue}: leases with fencing tokens.
 * - {@link Blobs}: content by SHA-256.
 *
 * Conformance suites for each live in `src/testing/store/`.
 */
import type {
  CallClass,
  Digest,
  EngineFingerprint,
  Event,
  Id,
  Lineage,
  LogprobKind,
  PolicySpan,
  RolloutEnd,
  SamplingParams,
  Task,
  Verdict,
} from '../core/index.ts'

// ---------------------------------------------------------------------------------------------------- sessions

/** How token ids are captured; see DESIGN §4. */
export type TokenStrategy = 'record' | 'splice'

/** The policy under which a session runs. Stored whole, exported in manifests. */
export interface SessionPolicy {
  readonly strategy: TokenStrategy | 'auto'
  /** Keep the thinking that was sampled, or let the template strip it and fork. */
  readonly history: 'sampled' | 'template'
  /** Sampling fields forced to a value whatever the harness asks, by name of {@link SamplingParams}. */
  readonly pin: Readonly<
    Partial<
      Record<
        | 'temperature'
        | 'topP'
        | 'topK'
        | 'minP'
        | 'presencePenalty'
        | 'frequencyPenalty'
        | 'repetitionPenalty'
        | 'maxTokens'
        | 'seed',
        number
      >
    >
  >
  /** Upper bounds. */
  readonly clamp: Readonly<{ maxTokens?: number; temperature?: number; n?: number }>
  /** Values used where the harness sets none. */
  readonly defaults: Readonly<{ temperature?: number; topP?: number; maxTokens?: number }>
  /** The model name sent to the engine; null: as the harness asks. */
  readonly model: string | null
  readonly budget: Readonly<{ maxCalls: number | null; maxSampledTokens: number | null; maxWallMs: number | null }>
  /** What becomes of a bound on thinking that another API than chat asks for: told to the engine, or recorded only (default). */
  readonly thinkingBudget?: 'pass' | 'record'
  /** What becomes of an engine call whose client went away: let it finish, or abort it upstream. */
  readonly onDisconnect: 'finish' | 'abort'
}

/** A conversation under one credential. 0..n per rollout. */
export interface SessionRecord {
  readonly id: Id
  readonly rolloutId: Id | null
  /** `agent` is the policy being trained; the others are recorded and never trained. */
  readonly role: 'agent' | 'judge' | 'user_simulator' | 'teacher' | 'probe'
  readonly policy: SessionPolicy
  /** SHA-256 of the session key; the key itself is never stored. */
  readonly keyDigest: Digest
  readonly forkedFrom: { readonly callId: Id; readonly offset: number } | null
  readonly createdAt: number
  readonly labels: Readonly<Record<string, string>>
}

// ------------------------------------------------------------------------------------------------------- calls

/** The intent of a call: stored before any response byte leaves. */
export interface CallIntent {
  readonly id: Id
  readonly sessionId: Id
  /** 0-based, strictly increasing in order of arrival within the session. */
  readonly seq: number
  readonly startedAt: number
  readonly dialect: 'chat' | 'responses' | 'messages' | 'gemini'
  readonly path: string
  readonly streamed: boolean
  /** SHA-256 of the request without `stream`, `stream_options`, `cache_control`, metadata: what a retry repeats. */
  readonly requestDigest: Digest
  /** The call that this one repeats, where the retry rule (I6) says so. */
  readonly retryOf: Id | null
  readonly lineage: Lineage
  readonly callClass: CallClass
  readonly strategy: TokenStrategy
  readonly asked: SamplingParams
  readonly used: SamplingParams
  readonly fingerprint: Digest | null
  /** Request headers without credentials, lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The client's request body, byte for byte. The recorder stores it as a delta on the session's earlier bodies. */
  readonly body: Uint8Array
}

/** How a call ended. `interrupted` is what recovery writes for intents without an end. */
export type CallFate =
  | { readonly kind: 'complete' }
  | { readonly kind: 'client_gone'; readonly upstream: 'finished' | 'aborted' }
  | { readonly kind: 'engine_error'; readonly code: string; readonly status: number | null; readonly message: string }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  | { readonly kind: 'interrupted' }

/** What reached the client. `echoed`: a later request of the session contained the answer. */
export type Delivery = 'sent' | 'echoed' | 'unknown'

/** One server-sent event or body chunk as it left the engine adapter: byte range in the reply body and time. */
export interface ReplyMark {
  readonly offset: number
  /** Milliseconds after the call's start. */
  readonly atMs: number
}

/** One of the n answers of a call. */
export interface ChoiceRecord {
  readonly index: number
  readonly finishReason: string | null
  /** The sampled segment of this choice; null where the engine gave no ids. */
  readonly segmentId: Id | null
  /** The message as the client saw it, JSON text. */
  readonly message: string
  /** Number of sampled tokens that the engine's usage claims, null when it says nothing. */
  readonly claimedTokens: number | null
}

/** Everything that a finished call adds, in one transaction. */
export interface CallCommit {
  readonly callId: Id
  readonly endedAt: number
  readonly firstByteAt: number | null
  readonly fate: CallFate
  readonly choices: readonly ChoiceRecord[]
  readonly segments: readonly Segment[]
  readonly spans: readonly Span[]
  /** The segment at whose end the prompt of this call stands, null where the engine gave no prompt ids. */
  readonly promptLeaf: Id | null
  readonly forks: readonly Fork[]
  /** Number of prompt tokens that the engine's usage claims. */
  readonly claimedPromptTokens: number | null
  /** Integrity findings: `count_mismatch`, `missing_ids`, `missing_logprobs`, `prompt_mismatch`, … */
  readonly findings: readonly string[]
  /** HTTP status sent to the client, null when none was. */
  readonly status: number | null
  /** The reply as the client got it, canonical bytes (SSE text or JSON). */
  readonly reply: Uint8Array
  readonly replyMarks: readonly ReplyMark[]
  readonly weightVersionBefore: string | null
  readonly weightVersionAfter: string | null
}

/** A call as read back. */
export interface CallRecord {
  readonly intent: CallIntent
  /** Null while in flight. */
  readonly commit: Omit<CallCommit, 'segments' | 'spans'> | null
  readonly delivery: Delivery
  /** True for an answer that a retry replaced and that never reached the client: kept, never trained. */
  readonly superseded: boolean
}

// ---------------------------------------------------------------------------------------------------- segments

export type SegmentOrigin = 'prompt' | 'sampled' | 'forced' | 'replayed' | 'imported'

/** Bits of {@link Segment.flags}. */
export const tokenFlag = { floored: 1, nan: 2, missing: 4 } as const

/**
 * An immutable run of token ids. `parent` null: a root. Otherwise it continues after the first `offset` tokens of the
 * parent segment (`0 < offset <= parent.tokens.length`), so that a fork needs no mutation.
 */
export interface Segment {
  readonly id: Id
  readonly sessionId: Id
  /** The call that brought it; null for imported ones. */
  readonly callId: Id | null
  /** Index of the choice for sampled segments. */
  readonly choice: number | null
  readonly parent: { readonly segmentId: Id; readonly offset: number } | null
  readonly origin: SegmentOrigin
  /** Shape [T], T >= 1 except for a sampled segment of an empty generation (T = 0). */
  readonly tokens: Int32Array
  /** Shape [T], natural log; null where no token of the segment has one. NaN exactly where flags say so. */
  readonly logprobs: Float32Array | null
  /** Shape [T], bits of {@link tokenFlag}; null: all clear. */
  readonly flags: Uint8Array | null
  readonly logprobKind: LogprobKind
  readonly policySpans: readonly PolicySpan[]
  /** For `replayed`: the segment whose tokens were replayed. */
  readonly replayOf: Id | null
  /** True for tokens behind a visible stop cut: never part of a later prompt. */
  readonly stopCut: boolean
}

/** Tokens `[start, end)` of a segment: whose they are, and whether they are content or template scaffold. */
export interface Span {
  readonly segmentId: Id
  readonly start: number
  readonly end: number
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool' | 'unknown'
  readonly part: 'content' | 'scaffold' | 'unknown'
  readonly sourceCallId: Id | null
}

/** Why a prompt that should have extended an earlier path did not. */
export type DriftCause =
  | 'think_stripped'
  | 'json_reserialised'
  | 'boundary_merge'
  | 'template'
  | 'harness_rewrite'
  | 'context_edit'
  | 'compaction'
  | 'parser'
  | 'retry'
  | 'truncated'
  | 'stop_cut'
  | 'multimodal'
  | 'ambiguous'
  | 'unknown'

/** One entry of the drift ledger. */
export interface Fork {
  readonly cause: DriftCause
  /** The call whose answer should have been extended. */
  readonly fromCallId: Id | null
  /** First differing position, counted in tokens from the root. */
  readonly position: number
  /** Ids around the difference, at most 16 each. */
  readonly expected: readonly number[]
  readonly got: readonly number[]
  /** Sampled tokens of the earlier path that lie behind the difference. */
  readonly tokensAffected: number
}

// ------------------------------------------------------------------------------------------------ the recorder

/** One session's whole log. */
export interface SessionLog {
  readonly session: SessionRecord
  readonly closedAt: number | null
  /** By seq. */
  readonly calls: readonly CallRecord[]
  /** Parents before children. */
  readonly segments: readonly Segment[]
  readonly spans: readonly Span[]
  readonly events: readonly Event[]
}

/** What of a session is read. */
export interface SessionReadOptions {
  /** Calls whose request body, reply and reply marks are read; the others come with empty ones. Default `all`. */
  readonly bodies?: 'all' | readonly Id[]
}

/** A session as far as a request can name it. */
export interface SessionKey {
  readonly id: Id
  readonly keyDigest: Digest
  readonly labels: Readonly<Record<string, string>>
  readonly closed: boolean
}

/** Reads of the log; also usable read-only while another process owns the store. */
export interface RecorderReader {
  sessions(filter?: { rolloutId?: Id; limit?: number }): Promise<readonly SessionRecord[]>
  /** The newest sessions, newest first. */
  sessionKeys(limit: number): Promise<readonly SessionKey[]>
  /** Throws `NOT_FOUND`; `STORE_CORRUPT` when a body does not have its digest. */
  session(id: Id, options?: SessionReadOptions): Promise<SessionLog>
  events(filter: { rolloutId: Id }): Promise<readonly Event[]>
  close(): Promise<void>
}

/**
 * The log. A promise that resolves means: the fact survives `kill -9`. Reads here see everything accepted before them; a
 * reader of another process that is opened later sees it, one that was open already sees it a moment later, at once after
 * `flush` and `closeSession`.
 */
export interface Recorder extends RecorderReader {
  openSession(session: SessionRecord): Promise<void>
  closeSession(id: Id, at: number): Promise<void>
  /** Stores the intent. Throws `STORE_*`. */
  beginCall(intent: CallIntent): Promise<void>
  /** Stores answer, segments, spans, forks and fate in one transaction. Idempotent by call id: a second commit is refused. */
  commitCall(commit: CallCommit): Promise<void>
  settleDelivery(callId: Id, delivery: Delivery): Promise<void>
  /** Marks an undelivered answer as replaced by a retry. */
  supersede(callId: Id, by: Id): Promise<void>
  appendEvent(event: Event): Promise<void>
  /** Resolves when everything accepted so far is durable and every reader sees it. */
  flush(): Promise<void>
}

// ----------------------------------------------------------------------------------------------- the catalogue

export interface RunRecord {
  readonly id: Id
  readonly name: string
  readonly createdAt: number
  /** The parsed configuration of the run, JSON. */
  readonly config: unknown
}

/** Rollouts of the same task digest and prompt variant. */
export interface GroupRecord {
  readonly id: Id
  readonly runId: Id
  readonly taskDigest: Digest
  readonly promptVariant: string
  readonly createdAt: number
}

/** One attempt: (run, group, slot, attempt). */
export interface RolloutRecord {
  readonly id: Id
  readonly runId: Id
  readonly groupId: Id
  readonly slot: number
  readonly attempt: number
  readonly harness: string
  readonly createdAt: number
}

/** A rollout with what was appended to it since. */
export interface RolloutView extends RolloutRecord {
  readonly taskDigest: Digest
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly end: RolloutEnd | null
  readonly endDetail: string
  /** Causes of taint; an RL export leaves a tainted rollout out. */
  readonly taints: readonly string[]
  /** All verdicts in order of appending; the last that none supersedes is in force. */
  readonly verdicts: readonly Verdict[]
  readonly labels: Readonly<Record<string, string>>
}

export interface CatalogueReader {
  run(id: Id): Promise<RunRecord>
  runs(limit?: number): Promise<readonly RunRecord[]>
  task(digest: Digest): Promise<Task>
  tasks(): Promise<readonly Task[]>
  group(id: Id): Promise<GroupRecord>
  groups(runId: Id): Promise<readonly GroupRecord[]>
  /** Throws `NOT_FOUND`. */
  rollout(id: Id): Promise<RolloutView>
  rollouts(filter: { runId?: Id; groupId?: Id; taskDigest?: Digest; limit?: number }): Promise<readonly RolloutView[]>
  fingerprint(digest: Digest): Promise<EngineFingerprint>
  /** Texts of token ids for one tokenizer, as far as known. Bytes, because a token may hold a part of a character. */
  tokenTexts(tokenizer: string, ids: readonly number[]): Promise<ReadonlyMap<number, Uint8Array>>
  /** Ids that start with `prefix`, over rollouts, sessions, runs, groups: for the CLI's short ids. */
  resolve(prefix: string): Promise<readonly { readonly kind: 'run' | 'group' | 'rollout'; readonly id: Id }[]>
  close(): Promise<void>
}

export interface Catalogue extends CatalogueReader {
  putTask(task: Task): Promise<void>
  putRun(run: RunRecord): Promise<void>
  putGroup(group: GroupRecord): Promise<void>
  putRollout(rollout: RolloutRecord): Promise<void>
  startRollout(id: Id, at: number): Promise<void>
  /** Only the first end counts; a second one throws `NOT_FOUND`-free and is ignored when equal, refused otherwise. */
  endRollout(id: Id, at: number, end: RolloutEnd, detail: string): Promise<void>
  taint(rolloutId: Id, cause: string): Promise<void>
  label(rolloutId: Id, name: string, value: string): Promise<void>
  appendVerdict(verdict: Verdict): Promise<void>
  /** Returns the digest under which it is stored. */
  putFingerprint(fingerprint: EngineFingerprint): Promise<Digest>
  putTokenTexts(tokenizer: string, texts: ReadonlyMap<number, Uint8Array>): Promise<void>
}

// --------------------------------------------------------------------------------------------------- the queue

/** A claimed item. `token` fences: a holder whose lease expired can no longer acknowledge. */
export interface Lease {
  readonly itemId: Id
  readonly topic: string
  readonly payload: unknown
  readonly token: number
  readonly attempt: number
  readonly expiresAt: number
}

/** Work waiting to be claimed. Times are the database's own. */
export interface Queue {
  /** Idempotent by id. */
  enqueue(
    topic: string,
    items: readonly { readonly id: Id; readonly payload: unknown; readonly priority?: number }[],
  ): Promise<void>
  claim(topic: string, owner: string, options: { limit: number; ttlMs: number }): Promise<readonly Lease[]>
  /** False when the lease is no longer held. */
  extend(lease: Lease, ttlMs: number): Promise<boolean>
  ack(lease: Lease): Promise<boolean>
  /** Gives the item back, optionally after a delay. */
  requeue(lease: Lease, delayMs?: number): Promise<boolean>
  depth(topic: string): Promise<{ readonly waiting: number; readonly leased: number; readonly done: number }>
  close(): Promise<void>
}

// --------------------------------------------------------------------------------------------------- the blobs

/** Content by hash. */
export interface Blobs {
  put(content: Uint8Array): Promise<Digest>
  /** Throws `NOT_FOUND`; `STORE_CORRUPT` when the content does not have its digest. */
  get(digest: Digest): Promise<Uint8Array>
  has(digest: Digest): Promise<boolean>
  list(): AsyncIterable<{ readonly digest: Digest; readonly sizeBytes: number }>
}

// ---------------------------------------------------------------------------------------------------- the store

/** A data directory opened by its owner. */
export interface Store extends AsyncDisposable {
  readonly directory: string
  readonly recorder: Recorder
  readonly catalogue: Catalogue
  readonly queue: Queue
  readonly blobs: Blobs
  /** What recovery found at opening: calls that were in flight. */
  readonly recovered: { readonly interruptedCalls: number }
  close(): Promise<void>
}

/** A data directory opened by a reader, at any time, beside its owner. */
export interface StoreReader extends AsyncDisposable {
  readonly directory: string
  readonly recorder: RecorderReader
  readonly catalogue: CatalogueReader
  readonly blobs: Pick<Blobs, 'get' | 'has' | 'list'>
  close(): Promise<void>
}
