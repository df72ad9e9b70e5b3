import type { IncomingMessage, ServerResponse } from 'node:http'
import { type CallClass, type Clock, type Id, newId, PaddockError } from '../../core/index.ts'
import type { CallIntent, Recorder } from '../../trajectory/index.ts'
import { type AskedGeneration, callDigest, type GenerationRoute, idHeader } from '../asked-generation.ts'
import type { DialectRequest } from '../dialects/contract.ts'
import { dialectNamed } from '../dialects/registry.ts'
import { Client } from '../http/client.ts'
import type { RunningCall } from '../running-call.ts'
import type { LiveSession } from '../session/live-session.ts'
import type { Graft, GraftedRequest, GraftLoss } from './graft.ts'
import { divergenceLine, type Recorded, type Replay } from './replay.ts'
import { replayCall } from './replayed-call.ts'

/** What calls of a fork need of the generation routes. */
export interface PastSurroundings {
  readonly recorder: Recorder
  readonly clock: Clock
  intentOf(
    session: LiveSession,
    asked: AskedGeneration,
    own: Pick<CallIntent, 'id' | 'lineage' | 'callClass' | 'strategy' | 'used' | 'fingerprint'>,
  ): CallIntent
  /** Refuses a request that did not follow its past: recorded, and no work of the agent. Throws the error. */
  refuse(session: LiveSession, asked: AskedGeneration, error: PaddockError): Promise<never>
  delivered(session: LiveSession, callId: Id): void
}

/** Calls of a fork whose past is another session's: answered from its record, or read with that past in place of their own. */
export class PastCalls {
  readonly #around: PastSurroundings

  constructor(around: PastSurroundings) {
    this.#around = around
  }

  /** True where the past of another session answers. Throws `REPLAY_DIVERGED` where that is refused. */
  async replayed(
    session: LiveSession,
    replay: Replay,
    asked: AskedGeneration,
    response: ServerResponse,
  ): Promise<boolean> {
    const { read, dialect, digest } = asked
    const { chat } = read
    const { id: sessionId, rolloutId } = session.record
    const lineage = session.knownLineage(chat.lineage)
    const callClass = dialect.beside ?? session.classify(lineage, chat.asked.maxTokens)
    const step = replay.step({ dialect: dialect.name, path: read.path, digest, callClass, body: read.body })
    if (step.kind === 'aside') return false
    if (step.kind === 'recorded') {
      const { answer, commit } = await this.#answerAgain(session, replay, asked, {
        recorded: step.call,
        lineage,
        callClass,
      })
      session.tellAnswer(commit, callClass)
      const { streamed, wantsUsage, wantsLogprobs } = chat
      answer.attach(new Client(response, { streamed, wantsUsage, wantsLogprobs }, idHeader(answer)))
      return true
    }
    const refuses = step.kind === 'diverged' && replay.onDivergence === 'refuse'
    if (!refuses) session.replay = null
    const about = { id: newId(), at: this.#around.clock.now(), rolloutId, sessionId }
    const told =
      step.kind === 'arrived'
        ? { phase: 'arrived' as const, of: session.record.forkedFrom?.callId ?? null, detail: '' }
        : { phase: 'diverged' as const, of: step.why.expected, detail: divergenceLine(step.why) }
    await this.#around.recorder.appendEvent({ ...about, kind: 'replay', callId: null, ...told })
    if (refuses) {
      const problem = `The harness asked something else than in the past: ${told.detail}.`
      await this.#around.refuse(session, asked, new PaddockError('REPLAY_DIVERGED', problem))
    }
    return false
  }

  /**
   * Writes down all that stood before the call to fork at, for a harness that does not ask for it. Rejects with `STORE_*`, and with
   * `BODY_*` where a recorded request cannot be read any more.
   */
  async givePast(session: LiveSession): Promise<void> {
    const { replay } = session
    if (replay === null) return
    for (const recorded of replay.takeAll()) {
      const { dialect: name, body, headers, path, startedAt, lineage, callClass } = recorded.intent
      const dialect = dialectNamed(name)
      const read = dialect.read({ bytes: Buffer.from(body), headers, path, now: startedAt, memory: session })
      const asked = { read, dialect, digest: callDigest(dialect, read.chat), retryOf: null, headers, received: null }
      session.rememberClass({ lineage, callClass })
      const { answer } = await this.#answerAgain(session, replay, asked, { recorded, lineage, callClass })
      // It reached the harness in the parent's session.
      answer.clientSent()
    }
  }

  #answerAgain(
    session: LiveSession,
    replay: Replay,
    asked: AskedGeneration,
    { recorded, ...about }: { readonly recorded: Recorded } & Pick<CallIntent, 'lineage' | 'callClass'>,
  ): ReturnType<typeof replayCall> {
    const { strategy, used, fingerprint } = recorded.intent
    const intent = this.#around.intentOf(session, asked, { ...about, id: newId(), strategy, used, fingerprint })
    const { recorder, clock } = this.#around
    const delivered = (callId: Id): void => this.#around.delivered(session, callId)
    return replayCall(session, { replay, intent, recorded, asked: asked.read }, { recorder, clock, delivered })
  }

  /** A request as it is read: of a harness that resumed another session, with the recorded past in the place of what it says. */
  grafted(
    session: LiveSession,
    { dialect, path }: GenerationRoute,
    { bytes, headers }: { readonly bytes: Buffer; readonly headers: IncomingMessage['headers'] },
  ): GraftedRequest {
    const { memory, now } = { memory: session, now: this.#around.clock.now() }
    const read = (body: Buffer) => dialect.read({ bytes: body, headers, path, now, memory })
    if (session.graft === null) return { asked: read(bytes), received: null, lost: null }
    const isMain = (asked: DialectRequest) => dialect.beside === undefined && this.#classOf(session, asked) === 'main'
    return session.graft.read(bytes, { read, isMain })
  }

  #classOf(session: LiveSession, { chat }: DialectRequest): CallClass {
    return session.classify(session.knownLineage(chat.lineage), chat.asked.maxTokens)
  }

  /** A call of the conversation does not say its past. Throws `GRAFT_LOST` where that is refused. */
  async lostGraft(session: LiveSession, asked: AskedGeneration, { what, detail }: GraftLoss): Promise<void> {
    const refuses = session.onDivergence === 'refuse'
    const about = { id: newId(), at: this.#around.clock.now(), rolloutId: session.record.rolloutId }
    const of = session.record.forkedFrom?.callId ?? null
    const told = { kind: 'replay' as const, phase: 'graft_lost' as const, callId: null, of, detail }
    await this.#around.recorder.appendEvent({ ...about, sessionId: session.record.id, ...told })
    if (refuses) {
      const error = new PaddockError('GRAFT_LOST', `The harness's request cannot be told from its past: ${detail}.`)
      await this.#around.refuse(session, asked, error)
    }
    if (what === 'results') return
    session.graft = null
    session.replay = null
  }

  /** Both bodies are kept: the call has what was read of it, a blob what its harness sent. */
  tellGraft(session: LiveSession, graft: Graft, call: RunningCall, received: Buffer): void {
    const { id: sessionId, rolloutId } = session.record
    call.afterIntent(async () => {
      const about = { id: newId(), at: this.#around.clock.now(), rolloutId, sessionId }
      const sha256 = await graft.keep(received)
      await this.#around.recorder.appendEvent({ ...about, kind: 'grafted', callId: call.id, sha256 })
    })
  }
}
