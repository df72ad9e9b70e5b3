/** A store with what the viewer's pages tell stories of: a family of rollouts with forks, side calls and sub-agents. */
import { type CallClass, type Id, newId, sha256 } from '../../src/core/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import type { CallCommit, CallIntent, Fork, Segment, SessionRecord, Store } from '../../src/trajectory/index.ts'

/** A call that is recorded by hand. */
interface Told {
  readonly class?: CallClass
  /** Call of this session that it goes on from; absent: it begins anew. */
  readonly after?: number
  readonly asks: string
  readonly says: string
  readonly fork?: Pick<Fork, 'cause'> & { readonly from: number }
  /** The answer was given before, by this call of another session. */
  readonly replays?: { readonly callId: Id; readonly segmentId: Id }
}

/** Calls of one session, one after the other. */
class Teller {
  readonly #store: Store
  readonly session: SessionRecord
  readonly #like: { readonly intent: CallIntent; readonly commit: CallCommit; readonly sampled: Segment }
  readonly calls: { readonly id: Id; readonly answer: Segment; readonly messages: readonly object[] }[] = []

  private constructor(store: Store, session: SessionRecord, like: Teller['like']) {
    this.#store = store
    this.session = session
    this.#like = like
  }

  get like(): { readonly intent: CallIntent; readonly commit: CallCommit; readonly sampled: Segment } {
    return this.#like
  }

  /** A session like that of a rollout which was recorded before. */
  static async open(store: Store, like: Id, rolloutId: Id, forkedFrom: SessionRecord['forkedFrom']): Promise<Teller> {
    const [session] = await store.recorder.sessions({ rolloutId: like })
    const { calls, segments } = await store.recorder.session(session?.id ?? '')
    const [call] = calls
    const sampled = segments.find(({ origin }) => origin === 'sampled')
    if (session === undefined || call === undefined || call.commit === null || sampled === undefined) {
      throw new Error('nothing to be like')
    }
    const own = { ...session, id: newId(), rolloutId, forkedFrom }
    await store.recorder.openSession(own)
    const commit = { ...call.commit, segments: [], spans: [] }
    return new Teller(store, own, { intent: call.intent, commit, sampled })
  }

  async tell(told: Told): Promise<{ readonly id: Id; readonly answer: Segment }> {
    const { recorder } = this.#store
    const { intent, commit, sampled } = this.#like
    const seq = this.calls.length
    const before = told.after === undefined ? undefined : this.calls[told.after]
    const messages = [...(before?.messages ?? []), { role: 'user', content: told.asks }]
    const body = Buffer.from(JSON.stringify({ model: 'counter', messages }))
    const id = newId()
    const common = { sessionId: this.session.id, callId: id }
    const prompt: Segment = {
      ...sampled,
      ...common,
      id: newId(),
      choice: null,
      parent: before === undefined ? null : { segmentId: before.answer.id, offset: before.answer.tokens.length },
      origin: 'prompt',
      tokens: Int32Array.from([1000 + seq, 2000 + seq]),
      logprobs: null,
      logprobKind: 'unknown',
      policySpans: [],
    }
    const answer: Segment = {
      ...sampled,
      ...common,
      id: newId(),
      parent: { segmentId: prompt.id, offset: 2 },
      ...(told.replays === undefined
        ? {}
        : { origin: 'replayed', replayOf: told.replays.segmentId, logprobs: null, policySpans: [] }),
    }
    const started: CallIntent = {
      ...intent,
      id,
      sessionId: this.session.id,
      seq,
      startedAt: 10 + seq,
      requestDigest: sha256(body),
      callClass: told.class ?? 'main',
      body,
    }
    await recorder.beginCall(started)
    const message = { role: 'assistant', content: told.says }
    const from = told.fork === undefined ? undefined : this.calls[told.fork.from]
    const forks: Fork[] =
      told.fork === undefined
        ? []
        : [
            {
              cause: told.fork.cause,
              fromCallId: from?.id ?? null,
              position: 3,
              expected: [1, 2],
              got: [1, 9],
              tokensAffected: 3,
            },
          ]
    await recorder.commitCall({
      ...commit,
      callId: id,
      endedAt: 11 + seq,
      segments: [prompt, answer],
      choices: [
        { index: 0, finishReason: 'stop', segmentId: answer.id, message: JSON.stringify(message), claimedTokens: 3 },
      ],
      promptLeaf: prompt.id,
      forks,
      reply: Buffer.from(JSON.stringify(message)),
    })
    await recorder.settleDelivery(id, 'sent')
    this.calls.push({ id, answer, messages: [...messages, message] })
    return { id, answer }
  }
}

/** What was told. */
export interface Story {
  readonly runId: Id
  readonly parent: Id
  readonly child: Id
  readonly parentSession: Id
  readonly childSession: Id
}

/** Records a rollout with a sub-agent, a title and a fork, and another that goes on from it behind its first answer. */
export async function recordStory(store: Store, texts: { readonly hostile: string }): Promise<Story> {
  const { catalogue, recorder } = store
  const [like = ''] = await recordRollouts(store, [{ reward: 1 }])
  const { runId, groupId, harness } = await catalogue.rollout(like)
  const rollout = async (slot: number, reward: number): Promise<Id> => {
    const id = newId()
    await catalogue.putRollout({ id, runId, groupId, slot, attempt: 0, harness, createdAt: 1 })
    await catalogue.startRollout(id, 2)
    await catalogue.endRollout(id, 60, 'completed', '')
    const [verdict] = (await catalogue.rollout(like)).verdicts
    if (verdict === undefined) throw new Error('no verdict to be like')
    const own = { ...verdict, id: newId(), rolloutId: id, status: 'scored' as const, reward }
    await catalogue.appendVerdict({ ...own, evidence: texts.hostile, components: { tests: reward } })
    return id
  }
  const parent = await rollout(10, 0)
  const told = await Teller.open(store, like, parent, null)
  const first = await told.tell({ asks: 'Mend the build.', says: 'I look at the log.' })
  await told.tell({ class: 'title', asks: 'A title for this.', says: 'Mending a build' })
  await told.tell({ class: 'subagent', asks: 'Find who calls it.', says: texts.hostile })
  await told.tell({ after: 0, asks: 'The log says: missing comma.', says: 'I add the comma.' })
  await told.tell({
    after: 0,
    asks: 'The log said: missing comma.',
    says: 'I add a semicolon.',
    fork: { cause: 'harness_rewrite', from: 3 },
  })
  await told.tell({ class: 'subagent', after: 2, asks: 'And who calls that?', says: 'Nobody.' })
  await recorder.closeSession(told.session.id, 50)
  const child = await rollout(11, 1)
  await catalogue.label(child, 'fork.rollout', parent)
  const fourth = told.calls[3]
  const going = await Teller.open(store, like, child, { sessionId: told.session.id, callId: fourth?.id ?? '' })
  const again = await going.tell({
    asks: 'Mend the build.',
    says: 'I look at the log.',
    replays: { callId: first.id, segmentId: first.answer.id },
  })
  await recorder.appendEvent({
    id: newId(),
    at: 20,
    rolloutId: child,
    sessionId: going.session.id,
    kind: 'replay',
    phase: 'answered',
    callId: again.id,
    of: first.id,
    detail: '',
  })
  await going.tell({ after: 0, asks: 'The log says: missing comma.', says: 'I add the comma and run it.' })
  await recorder.appendEvent({
    id: newId(),
    at: 21,
    rolloutId: child,
    sessionId: going.session.id,
    kind: 'replay',
    phase: 'arrived',
    callId: null,
    of: fourth?.id ?? null,
    detail: '',
  })
  await recorder.closeSession(going.session.id, 50)
  return { runId, parent, child, parentSession: told.session.id, childSession: going.session.id }
}
