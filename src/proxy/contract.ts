/**
 * What the proxy promises to the rooms above it (rollout, server, cli). Wire shapes of dialects and engines stay inside.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { CallClass, Clock, Digest, EngineFingerprint, Id } from '../core/index.ts'
import type {
  Blobs,
  CallOutcome,
  DriftCause,
  Recorder,
  SessionLog,
  SessionPolicy,
  SessionRecord,
  TokenStrategy,
} from '../trajectory/index.ts'
import type { ProbeAnswer, ProbeOrder } from './probes/contract.ts'
import type { GraftOrder } from './past/graft.ts'
import type { ScoreOrder, Scores } from './scoring.ts'
import type { ProxyShard } from './shards/contract.ts'
import type { EngineAdapter } from './engines/contract.ts'
import type {
  FleetEvent,
  FleetLimits,
  FleetStatus,
  LiveWeights,
  PauseElsewhere,
  PauseOrder,
  PauseOutcome,
  ReplicaWeights,
  WeightsElsewhere,
  WeightsOrder,
  WeightsOutcome,
} from './fleet/contract.ts'

/** Sizes and times; every one has a default in `defaultLimits`. Milliseconds unless the name says otherwise. */
export interface ProxyLimits {
  /** Calls that may be with the engine at once. Further ones wait in a visible queue, never inside the HTTP pool. */
  readonly maxInFlight: number
  /** Calls that may wait; beyond it the answer is 503 `PROXY_OVERLOADED`. */
  readonly maxQueued: number
  readonly maxBodyBytes: number
  /** Size of all request headers together. */
  readonly maxHeaderBytes: number
  /** Time for a client to send its headers, and its whole request. */
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  /** A stream that was silent for this long gets a keep-alive comment. */
  readonly keepAliveMs: number
  /** An engine that was silent for this long is given up: `ENGINE_TIMEOUT`. */
  readonly stallMs: number
  /** A client that leaves after the engine was silent in its call for this long was made to: its rollout is tainted. */
  readonly stallTaintMs: number
  /** Finished answers that are kept per session for a client that asks again. */
  readonly replayWindow: number
}

export interface ProxyOptions {
  readonly recorder: Recorder
  /** Null: none yet; it comes with `setEngines`, and nothing is served before. */
  readonly engine: EngineAdapter | null
  /** Further replicas of the engine, of the same kind and with the same model; sessions are spread over all of them. */
  readonly replicas?: readonly EngineAdapter[]
  readonly fleet?: Partial<FleetLimits>
  /** Keeps what an engine gives beside ids and logprobs: alternatives per token, routed experts. Default: dropped. */
  readonly blobs?: Pick<Blobs, 'put'>
  /** Stores the engine's fingerprint and returns its digest; without it calls carry none. */
  readonly putFingerprint?: (fingerprint: EngineFingerprint) => Promise<string>
  readonly clock?: Clock
  readonly onEvent?: (event: ProxyEvent) => void
  readonly limits?: Partial<ProxyLimits>
  /** Open a session per harness-native id for requests on `/v1` whose key is unknown. Loopback listeners only. */
  readonly openMode?: boolean
  /** Policy of the sessions that open mode opens. */
  readonly openPolicy?: Partial<SessionPolicy>
  /**
   * Says of a session that an earlier process left open in the recorder whether it is gone on with under its key: its
   * conversation, tokens, stored responses and budgets are as they were. Default: of none.
   */
  readonly revives?: (session: SessionRecord) => boolean | Promise<boolean>
  /**
   * Several policies, of which each session has one: the first is asked at {@link engine}, and is that of sessions that name none.
   * Default: one policy without a name.
   */
  readonly policies?: readonly ProxyPolicy[]
  /** One of several behind one listener: its sessions are those whose keys fall to it. Default: all are. */
  readonly shard?: ProxyShard
}

/** One of several policies. */
export interface ProxyPolicy {
  readonly name: string
  /** False: it is recorded and never trained. */
  readonly trained: boolean
  /** What its calls name at the engine; null: as its sessions say. */
  readonly model: string | null
  /** Others are asked at the same engine, under adapters of theirs: the weights below those stay. */
  readonly isShared: boolean
  /** Its engine and further replicas of that; of the first policy null, which is asked at the engine of the proxy. */
  readonly engine: { readonly adapter: EngineAdapter; readonly replicas: readonly EngineAdapter[] } | null
}

/** What a policy is to those who train. */
export type PolicyFacts = Pick<ProxyPolicy, 'name' | 'trained' | 'model' | 'isShared'>

/** What happens, as it happens: for `paddock serve`, metrics and the rollout. Never holds a key or a body. */
export type ProxyEvent =
  | CallEvent
  /** Something happened to a replica, or generation was paused or got new weights. */
  | ({ readonly type: 'engine' } & FleetEvent)
  /** The engine has token routes and nothing can be spliced behind what it renders: `auto` records. */
  | { readonly type: 'engine'; readonly what: 'splice_void'; readonly replica: string; readonly detail: string }
  | {
      /** An answer left whole (`sent`), or came back in a later prompt (`echoed`). */
      readonly type: 'delivery'
      readonly rolloutId: Id | null
      readonly sessionId: Id
      readonly callId: Id
      readonly delivery: 'sent' | 'echoed'
    }
  | {
      /** A call ended without an answer, and not through the agent: the rollout is tainted unless a retry is answered (invariant I7). */
      readonly type: 'taint'
      readonly rolloutId: Id | null
      readonly sessionId: Id
      readonly callId: Id
      /** The code of the error; `ENGINE_TIMEOUT` also of a client that gave a silent engine up. */
      readonly cause: string
    }
  /** `revived`: a session of an earlier process is served again. */
  | { readonly type: 'session'; readonly phase: 'opened' | 'revived' | 'closed'; readonly session: SessionRecord }
  | {
      readonly type: 'budget'
      readonly rolloutId: Id | null
      readonly sessionId: Id
      readonly which: 'maxCalls' | 'maxSampledTokens' | 'maxWallMs'
    }

/** A recorded call, when it has settled. */
export type CallEvent = { readonly type: 'call' } & CallLine

/** One recorded call in a line. */
export interface CallLine {
  readonly callId: Id
  readonly sessionId: Id
  readonly rolloutId: Id | null
  /** The policy that its session belongs to, of several; absent: there is one. */
  readonly policy?: string
  readonly seq: number
  readonly callClass: CallClass
  /** How its ids were captured: what `auto` came to for this call. */
  readonly strategy: TokenStrategy
  readonly model: string | null
  readonly streamed: boolean
  readonly status: number | null
  readonly outcome: CallOutcome
  readonly promptTokens: number | null
  readonly sampledTokens: number | null
  readonly finishReasons: readonly (string | null)[]
  /** Mean entropy per sampled token that its alternatives show, in nats: at least so much. Null: nobody asked for alternatives. */
  readonly entropy: number | null
  /** Names of the tools called, and the first words of the answer. */
  readonly toolCalls: readonly string[]
  readonly preview: string
  readonly findings: readonly string[]
  readonly forks: readonly DriftCause[]
  /** Per fork: sampled tokens of the earlier path behind the difference. */
  readonly forkedTokens: readonly number[]
  /** From arrival to commit, and to the first byte. */
  readonly durationMs: number
  readonly firstByteMs: number | null
}

export interface OpenSession {
  readonly rolloutId?: Id | null
  readonly role?: SessionRecord['role']
  readonly policy?: Partial<SessionPolicy>
  readonly labels?: Readonly<Record<string, string>>
  /** What another session was asked and answered is given again, as far as it is asked again. Default: nothing. */
  readonly past?: SessionPast
}

/** The past of a session that goes on from another one's. */
export interface SessionPast {
  readonly log: SessionLog
  /** Of {@link log}, and of those that it goes on from itself. */
  readonly ancestors: readonly SessionRecord[]
  /** A call of the log: its request is the last one that must be the same, and the first one that the engine is asked. */
  readonly until: Id
  /**
   * What becomes of a request that is not what was asked then. `refuse`: it fails with `REPLAY_DIVERGED`, and so do all later
   * ones; `branch`: it and all later ones are asked of the engine.
   */
  readonly onDivergence: 'refuse' | 'branch'
  /**
   * `asked`: its harness is started anew and asks all of it again. `given`: it stands in the session when that opens, and the harness
   * begins with the call `until`. Default `asked`.
   */
  readonly by?: 'asked' | 'given'
  /** Of a harness that resumed its own session. */
  readonly graft?: GraftOrder
}

/** A session with its key: the only time that the key is seen. */
export interface OpenedSession {
  readonly session: SessionRecord
  readonly key: string
  /** `<origin>/s/<session>/v1`: what a harness takes as its base URL. */
  readonly baseUrl: (origin: string) => string
}

/** How a session stands. */
export interface SessionStats {
  readonly sessionId: Id
  readonly open: boolean
  readonly calls: number
  /** Calls that the model answered to the end. */
  readonly answered: number
  readonly inFlight: number
  readonly sampledTokens: number
  /** Time in which at least one call of the session was waiting for the engine. Agent clocks leave it out. */
  readonly modelWaitMs: number
  readonly exhausted: 'maxCalls' | 'maxSampledTokens' | 'maxWallMs' | null
  /** Causes of the calls that ended without an answer, through no fault of the agent, and were not answered when they were repeated. */
  readonly taints: readonly string[]
  /** Why faults of its engine leave nothing of what it sampled to train; null: something is left, or nothing was sampled. */
  readonly unsound: string | null
  /** Some answer may be trained, as far as its engine goes. */
  readonly hasSound: boolean
  /** Code of the last refusal or engine error, null when the last call was answered. */
  readonly lastError: string | null
  /** The past of another session is still being given again, or was left where the harness went its own way. */
  readonly replaying: boolean
}

/** An answer of a session as its client gets it. */
export interface CommittedAnswer {
  readonly callId: Id
  readonly callClass: CallClass
  /** Of each choice, JSON text in the client's dialect. */
  readonly messages: readonly string[]
}

export type AnswerListener = (answer: CommittedAnswer) => void

/** A request that has come whole, before anything of it is recorded or answered. */
export interface WaitingRequest {
  readonly digest: Digest
  readonly callClass: CallClass
  /** As its client sent it. */
  readonly body: Uint8Array
}

export type RequestHold = (request: WaitingRequest) => Promise<void>

export interface ProxyStats {
  readonly sessions: { readonly open: number }
  readonly inFlight: number
  readonly maxInFlight: number
  readonly queued: number
  readonly maxQueued: number
  readonly calls: number
  readonly sampledTokens: number
  readonly promptTokens: number
  readonly upstream: { readonly connections: number; readonly free: number; readonly pending: number }
  readonly draining: boolean
}

/** What a box's socket serves: the socket authorises, no key is needed, a key of another session is refused. */
export interface SessionHandler {
  request(request: IncomingMessage, response: ServerResponse): void
}

/** A running inference listener. */
export interface Listener {
  /** `http://host:port`. */
  readonly origin: string
  readonly port: number
  /**
   * Serves a connection that another process has accepted, of which so much is read already. Requests on it whose session is another
   * shard's are passed on to that one; those on the listener's own connections never are.
   */
  adopt(socket: Socket, read: Uint8Array): void
  close(): Promise<void>
}

/** The engine of one policy, as those ask it who move weights, score and probe. */
export interface EngineSide {
  readonly engine: EngineAdapter
  /** How the replicas of the engine stand. */
  engineStatus(): FleetStatus
  /** Asks each replica's health route now; `ill` says why it does not answer, null: it does. */
  engineHealth(): Promise<readonly { readonly url: string; readonly ill: string | null }[]>
  /**
   * New generations wait from now on; see {@link PauseOrder}. `elsewhere`: another process asks the engines for what is to be done with
   * them, and lets them go on. Throws `ENGINE_PAUSED`, `PAUSE_TIMED_OUT`.
   */
  pauseEngine(order: PauseOrder, elsewhere?: PauseElsewhere): Promise<PauseOutcome>
  /** Ends a pause; engines that were left frozen by another process go on too. */
  resumeEngine(): Promise<void>
  hasEngine(): boolean
  /** Throws `ENGINE_NONE` where there is no engine yet. */
  requireEngine(): void
  /**
   * The replicas of the engine from now on, one at least: new ones take calls, those that are not named get no more and leave when
   * what runs on them has ended. A new one that does not say its weights is taken to have the `live` ones, one that says others gets no
   * calls before a weight update reaches it, and one without their adapter gets that.
   */
  setEngines(engines: readonly EngineAdapter[], live: LiveWeights | null): Promise<void>
  /** Throws what {@link pauseEngine} throws, and `WEIGHTS_REFUSED`. */
  updateWeights(order: WeightsOrder): Promise<WeightsOutcome>
  /** Adapters that are not live any more are unloaded as soon as nothing runs under them: whoever shares the engines knows the new ones. */
  dropOldAdapters(): void
  /** Another process has brought these weights to the same engines, which are asked for nothing but their version. */
  followWeights(weights: WeightsElsewhere): Promise<void>
  /** Asks each replica which weights it has. */
  engineWeights(): Promise<readonly ReplicaWeights[]>
  /**
   * Logprobs of given ids, beside all sessions: nothing of it is recorded or trained. Throws `ENGINE_INCAPABLE`, `SCORE_REFUSED`,
   * `ENGINE_UNREACHABLE`, `ENGINE_ERROR`, `ENGINE_UNTRUSTED`.
   */
  scoreIds(order: ScoreOrder): Promise<Scores>
  /**
   * Samples behind given ids, beside all sessions and behind all calls: recorded in a session of role `probe`, never trained. Throws
   * `ENGINE_INCAPABLE`, `PROXY_DRAINING`, `ENGINE_*`, `CONTEXT_OVERFLOW`, `STORE_*`.
   */
  probe(order: ProbeOrder): Promise<ProbeAnswer>
  /** The ids of a text as it stands, without special tokens. Throws `ENGINE_INCAPABLE`, `ENGINE_UNREACHABLE`, `ENGINE_ERROR`. */
  textIds(text: string): Promise<readonly number[]>
  /** Takes somebody's word for the weights of replicas that do not name them themselves; an adapter they get where they are without it. */
  believeWeights(live: LiveWeights): Promise<void>
}

/** Its own engine is that of the first policy. */
export interface Proxy extends EngineSide {
  /** The first one first; empty: there is one policy, without a name. */
  readonly policies: readonly PolicyFacts[]
  /** The engine of a policy; null: of the first. Throws `POLICY_UNKNOWN`. */
  engineOf(policy: string | null): EngineSide
  /** Throws `ENGINE_INCAPABLE` where the engine or this version cannot do what the policy demands; `STORE_*`. */
  openSession(open: OpenSession): Promise<OpenedSession>
  /** Aborts what is in flight, commits it, refuses everything later. Idempotent. Throws `SESSION_UNKNOWN`. */
  closeSession(id: Id): Promise<void>
  /** Closes what open mode opened or went on with. For an owner that stops in an orderly way. */
  closeOpenMode(): Promise<void>
  /** Throws `SESSION_UNKNOWN`. */
  sessionStats(id: Id): SessionStats
  /** Tells each answer of an open session once it is committed, before its client can act on it. Throws `SESSION_UNKNOWN`. */
  watchAnswers(id: Id, listener: AnswerListener): void
  /** Each request of an open session waits for it, a repeated one too: its client stands still, and is told what it rejects with. One at a time. Throws `SESSION_UNKNOWN`. */
  holdRequests(id: Id, hold: RequestHold): void
  /** Throws `SESSION_UNKNOWN`, `SESSION_CLOSED`. */
  sessionHandler(id: Id): SessionHandler
  /** Starts the inference listener. With `openMode` only loopback hosts are accepted. */
  listen(options: { readonly host?: string; readonly port?: number }): Promise<Listener>
  stats(): ProxyStats
  /**
   * Calls of a session wait before they reach the engine from now on; what runs is ended and kept where it can be gone on with, else
   * runs to its end. Its harness is kept by keep-alives. Gives how many were ended. Throws `SESSION_UNKNOWN`, `PAUSE_TIMED_OUT`.
   */
  shelveSession(id: Id): Promise<number>
  /** Whether nothing of a session runs, or only what can be ended and gone on with. */
  canShelve(id: Id): boolean
  /** They go on, under the weights that there are. */
  resumeSession(id: Id): void
  /** Takes no new calls and resolves when the running ones are committed. */
  drain(): Promise<void>
  /** Ends listeners and running calls, commits what came. Idempotent. */
  close(): Promise<void>
}
