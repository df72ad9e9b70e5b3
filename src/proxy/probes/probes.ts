import { type Clock, type Id, type LogprobKind, newId, PaddockError, sha256 } from '../../core/index.ts'
import { type CallCommit, type CallIntent, type Recorder, wireFaultOf } from '../../trajectory/index.ts'
import { countsOf } from '../answered.ts'
import { previewOf } from '../call-line.ts'
import { emptyCommit } from '../commit.ts'
import type { ProxyEvent } from '../contract.ts'
import { Answer, type ChoiceAnswer } from '../dialects/chat/answer.ts'
import { engineRefusal } from '../dialects/chat/errors.ts'
import { tokenIdOf } from '../dialects/chat/wire-values.ts'
import type { ContinuationRoute, EngineAdapter } from '../engines/contract.ts'
import type { KnownFacts } from '../engines/facts.ts'
import { shownUrl } from '../engines/http.ts'
import { PromptIds } from '../engines/prompt-ids.ts'
import type { Admission } from '../session/admission.ts'
import { keyDigest, newKey } from '../session/keys.ts'
import { wholePolicy } from '../session/policy.ts'
import type { CallTokens } from '../tokens/contract.ts'
import { RecordedTree } from '../tokens/recorded-tree.ts'
import type { Upstream } from '../upstream.ts'
import type { ProbeAnswer, ProbeOrder } from './contract.ts'
import { ProbeRequest, type ProbeReply } from './request.ts'

/** What probing needs of the proxy around it. */
export interface ProbeParts {
  readonly recorder: Pick<Recorder, 'openSession' | 'closeSession' | 'beginCall' | 'commitCall'>
  readonly admission: Pick<Admission, 'enterBehind' | 'leaveBehind'>
  readonly upstream: Upstream & {
    fork(sessionId: string, callId: string): void
    forget(sessionId: string): void
  }
  readonly engine: () => EngineAdapter
  readonly known: (sessionId: Id) => KnownFacts | null
  readonly clock: Clock
  /** Silence of the engine after which a probe is given up; the time of a pause is none. */
  readonly stallMs: number
  readonly emit: (event: ProxyEvent) => void
}

/**
 * Samples behind recorded ids for whoever trains: no harness sees it, calls of harnesses go first, and it is recorded in a session of
 * role `probe`, which nothing trains.
 */
export class Probes {
  private readonly parts: ProbeParts
  private readonly running = new Set<AbortController>()
  private closed = false

  constructor(parts: ProbeParts) {
    this.parts = parts
  }

  /** Throws `ENGINE_INCAPABLE`, `PROXY_DRAINING`, the engine's errors, `STORE_*`, and the signal's reason. */
  async probe(order: ProbeOrder): Promise<ProbeAnswer> {
    const engine = this.parts.engine()
    const { continuations } = engine
    if (continuations === undefined) {
      throw new PaddockError(
        'ENGINE_INCAPABLE',
        `The engine ${engine.name} at ${shownUrl(engine.url)} takes no probes.`,
        {
          fix: 'Use vLLM or SGLang, which sample behind given ids.',
        },
      )
    }
    const own = new AbortController()
    this.running.add(own)
    try {
      await this.parts.admission.enterBehind()
      try {
        if (this.closed) throw new PaddockError('PROXY_DRAINING', 'The proxy takes no new probes.')
        order.signal.throwIfAborted()
        const signal = AbortSignal.any([order.signal, own.signal])
        return await this.record({ ...order, signal }, continuations)
      } finally {
        this.parts.admission.leaveBehind()
      }
    } finally {
      this.running.delete(own)
    }
  }

  /** Ends what runs; what came of it is not known. */
  close(): void {
    this.closed = true
    for (const one of this.running)
      one.abort(new PaddockError('PROXY_DRAINING', 'The proxy was closed while the probe ran.'))
  }

  private async record(order: ProbeOrder, route: ContinuationRoute): Promise<ProbeAnswer> {
    const { recorder, clock, upstream } = this.parts
    const sessionId = newId()
    await recorder.openSession({
      id: sessionId,
      rolloutId: order.rolloutId,
      role: 'probe',
      policy: wholePolicy({}),
      keyDigest: keyDigest(newKey()),
      forkedFrom: null,
      createdAt: clock.now(),
      labels: { 'probe.of': order.of },
    })
    upstream.fork(sessionId, order.of)
    try {
      return await this.ask(order, route, sessionId)
    } finally {
      upstream.forget(sessionId)
      await recorder.closeSession(sessionId, clock.now())
    }
  }

  private async ask(order: ProbeOrder, route: ContinuationRoute, sessionId: Id): Promise<ProbeAnswer> {
    const { recorder, clock, upstream, stallMs } = this.parts
    const { model, k, maxTokens, temperature } = order
    const facts = this.parts.known(sessionId)
    const prompt = new PromptIds(order.ids)
    const asked = route.ask({ ids: prompt, model, k, maxTokens, temperature })
    const intent = intentOf(order, { path: asked.path, sessionId, at: clock.now(), fingerprint: facts?.digest ?? null })
    await recorder.beginCall(intent)
    const ids = { callId: intent.id, sessionId }
    const request = new ProbeRequest(upstream, { ask: asked, ids, stallMs, signal: order.signal })
    const answer = new Answer(false)
    let firstByteAt: number | null = null
    try {
      const reply = await request.reply
      firstByteAt = clock.now()
      read(answer, { reply, route, prompt, callId: intent.id })
      answer.met(await request.weights(answer.weightVersionLast))
      return await this.commit({ order, intent, answer, reply, facts, firstByteAt })
    } catch (cause) {
      // What is committed already is not committed again.
      if (cause instanceof Untrusted) throw cause.error
      const error = asError(cause)
      const outcome: CallCommit['outcome'] = order.signal.aborted
        ? { kind: 'client_gone', upstream: 'aborted' }
        : { kind: 'engine_error', code: error.code, status: null, message: error.message }
      const commit = { ...emptyCommit(intent.id, clock.now()), firstByteAt, outcome }
      await recorder.commitCall(commit)
      this.tell(order, { intent, commit, answer })
      throw error
    }
  }

  private async commit(one: {
    readonly order: ProbeOrder
    readonly intent: CallIntent
    readonly answer: Answer
    readonly reply: ProbeReply
    readonly facts: KnownFacts | null
    readonly firstByteAt: number
  }): Promise<ProbeAnswer> {
    const { order, intent, answer, reply } = one
    const { recorder, clock } = this.parts
    const engine = this.parts.engine()
    const kind = answer.servedBy?.fingerprint.logprobKind ?? engine.logprobKind
    const tokens = hang(one, { engine, kind })
    const commit: CallCommit = {
      ...emptyCommit(intent.id, clock.now()),
      firstByteAt: one.firstByteAt,
      outcome: { kind: 'complete' },
      choices: answer.choices.map((choice) => ({
        index: choice.index,
        finishReason: choice.finishReason,
        segmentId: tokens.segments.find((segment) => segment.choice === choice.index && !segment.stopCut)?.id ?? null,
        message: JSON.stringify({ role: 'assistant', content: choice.content }),
        claimedTokens: choice.tokenIds.length,
      })),
      ...tokens,
      claimedPromptTokens: answer.claimed('prompt_tokens'),
      status: reply.status,
      reply: reply.body,
      weightVersionBefore: answer.weightVersionFirst,
      weightVersionAfter: answer.weightVersionLast,
    }
    await recorder.commitCall(commit)
    this.tell(order, { intent, commit, answer })
    const fault = wireFaultOf(tokens.findings)
    if (fault !== null) {
      const problem = `The engine told continuations that cannot be true: \`${fault}\`.`
      throw new Untrusted(new PaddockError('ENGINE_UNTRUSTED', problem, { data: { fault } }))
    }
    const { weightVersionFirst: before, weightVersionLast: after } = answer
    return {
      callId: intent.id,
      sessionId: intent.sessionId,
      kind,
      weightVersion: before === after ? after : null,
      mixed: before !== after && before !== null && after !== null,
      continuations: answer.choices.map(continuationOf),
    }
  }

  private tell(
    { rolloutId }: ProbeOrder,
    { intent, commit, answer }: { readonly intent: CallIntent; readonly commit: CallCommit; readonly answer: Answer },
  ): void {
    const { promptTokens, sampledTokens } = countsOf(answer)
    this.parts.emit({
      type: 'call',
      callId: intent.id,
      sessionId: intent.sessionId,
      rolloutId,
      seq: intent.seq,
      callClass: intent.callClass,
      strategy: intent.strategy,
      model: intent.lineage.modelAsked,
      streamed: false,
      status: commit.status,
      outcome: commit.outcome,
      promptTokens,
      sampledTokens,
      finishReasons: commit.choices.map(({ finishReason }) => finishReason),
      entropy: null,
      toolCalls: [],
      preview: previewOf(answer.choices[0]?.content ?? ''),
      findings: commit.findings,
      forks: [],
      forkedTokens: [],
      durationMs: commit.endedAt - intent.startedAt,
      firstByteMs: commit.firstByteAt === null ? null : commit.firstByteAt - intent.startedAt,
    })
  }
}

/** An answer that is recorded, and is not given to anybody. */
class Untrusted extends Error {
  readonly error: PaddockError

  constructor(error: PaddockError) {
    super(error.message)
    this.error = error
  }
}

function read(
  answer: Answer,
  of: {
    readonly reply: ProbeReply
    readonly route: ContinuationRoute
    readonly prompt: PromptIds
    readonly callId: Id
  },
): void {
  const { status, body } = of.reply
  if (status >= 400) throw engineRefusal(status, body, null, of.callId).error
  const root = of.route.read(body)
  if (root === null) throw new PaddockError('ENGINE_ERROR', 'The engine answered with no continuations.')
  answer.tellPrompt(of.prompt.ids)
  const echo = root['prompt_token_ids']
  if (Array.isArray(echo)) answer.tellPrompt(Int32Array.from(echo, tokenIdOf))
  answer.add(root)
  if (answer.error !== null) throw new PaddockError('ENGINE_ERROR', 'The engine answered with an error.')
}

function hang(
  {
    order,
    intent,
    answer,
    facts,
  }: {
    readonly order: ProbeOrder
    readonly intent: CallIntent
    readonly answer: Answer
    readonly facts: KnownFacts | null
  },
  { engine, kind }: { readonly engine: EngineAdapter; readonly kind: LogprobKind },
): CallTokens {
  return new RecordedTree(intent.sessionId).add({
    callId: intent.id,
    sessionId: intent.sessionId,
    answer,
    whole: true,
    match: nothingBefore,
    messages: [],
    forked: null,
    logprobKind: kind,
    gives: engine.gives,
    n: order.k,
    stops: [],
    vocabulary: facts?.vocabulary ?? null,
    engineChanged: false,
    model: order.model,
  })
}

const nothingBefore = { at: -1, continues: [], echoed: [], edited: false, replaced: null }

function continuationOf(choice: ChoiceAnswer): ProbeAnswer['continuations'][number] {
  return {
    index: choice.index,
    text: choice.content ?? '',
    ids: choice.tokenIds,
    logprobs: choice.tokenIds.map((_, at) => {
      const logprob = choice.logprobs[at] ?? Number.NaN
      return Number.isFinite(logprob) ? logprob : null
    }),
    finishReason: choice.finishReason,
  }
}

function intentOf(
  { of, model, k, maxTokens, temperature, ids }: ProbeOrder,
  own: {
    readonly path: string
    readonly sessionId: Id
    readonly at: number
    readonly fingerprint: CallIntent['fingerprint']
  },
): CallIntent {
  // The ids stand in the call's prompt segment; they are not stored twice.
  const body = Buffer.from(
    JSON.stringify({ probe_of: of, prompt_tokens: ids.length, n: k, max_tokens: maxTokens, temperature }),
  )
  const sampling = {
    temperature,
    topP: 1,
    topK: -1,
    minP: 0,
    presencePenalty: 0,
    frequencyPenalty: 0,
    repetitionPenalty: 1,
    maxTokens,
    seed: null,
    stop: [],
    n: k,
    other: [],
  }
  return {
    id: newId(),
    sessionId: own.sessionId,
    seq: 0,
    startedAt: own.at,
    dialect: 'completions',
    path: own.path,
    streamed: false,
    requestDigest: sha256(body),
    retryOf: null,
    lineage: { ...noLineage, modelAsked: model },
    callClass: 'probe',
    strategy: 'splice',
    asked: sampling,
    used: sampling,
    fingerprint: own.fingerprint,
    headers: {},
    body,
  }
}

const noLineage = {
  nativeSession: null,
  nativeAgent: null,
  nativeParent: null,
  requestKind: null,
  toolsDigest: null,
  toolCount: 0,
  systemDigest: null,
  userAgent: null,
  modelAsked: null,
  retryCount: null,
  idempotencyKey: null,
}

function asError(cause: unknown): PaddockError {
  return cause instanceof PaddockError ? cause : new PaddockError('ENGINE_ERROR', 'The probe was given up.', { cause })
}
