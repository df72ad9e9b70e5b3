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
  /** A run of three tasks: one is failed, one is passed by half, of one nobody knows. */
  readonly tasksRun: Id
  /** A run of these and another task, after which the failed one is passed and the half passed one failed. */
  readonly laterRun: Id
  /** A run with settings and without rollouts. */
  readonly setRun: Id
  /** A rollout of two calls. */
  readonly like: Id
  /** The same words as ids of another tokenizer. */
  readonly other: Id
  readonly parent: Id
  readonly child: Id
  readonly parentSession: Id
  readonly childSession: Id
  /** A PNG, an SVG and a page, by digest: what a tool called pictures. */
  readonly pictures: readonly string[]
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
    await catalogue.putWork(id, {
      at: 50,
      end: 'completed',
      detail: '',
      fault: null,
      artifacts: [],
      shared: false,
      answered: true,
      calls: 2,
      sampledTokens: 100 + slot,
      agentMs: 40,
    })
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
  const [ofTasks = ''] = await recordRollouts(store, [
    { task: 'half', group: 'half', reward: 1 },
    { task: 'half', group: 'half', reward: 0.5 },
    { task: 'half', group: 'half', reward: 1, taint: 'engine_died' },
    { task: 'half', group: 'half', reward: null, end: null },
    { task: 'unknown', group: 'unknown', reward: null, end: 'infra' },
    { task: 'hard', group: 'hard', reward: 0 },
    { task: 'hard', group: 'hard', reward: 0 },
    { task: 'hard', group: 'hard', reward: 'infra_error' },
  ])
  const tasksRun = (await catalogue.rollout(ofTasks)).runId
  const [later = '', other = ''] = await recordRollouts(store, [
    { task: 'hard', group: 'hard', reward: 1, tokenizer: 'other' },
    { task: 'recorded', group: 'recorded', reward: 0, tokenizer: 'other' },
    { task: 'half', group: 'half', reward: 0, tokenizer: 'other' },
    { task: 'unknown', group: 'unknown', reward: 1, tokenizer: 'other' },
  ])
  const laterRun = (await catalogue.rollout(later)).runId
  const setRun = newId()
  const config = { seeds: [1, 2], note: texts.hostile, model: { name: 'm' } }
  await catalogue.putRun({ id: setRun, name: texts.hostile, createdAt: 9, config })
  const pictures = await recordEvents(store, parent, { callId: fourth?.id ?? null, hostile: texts.hostile })
  const rows = [
    { rollout: parent, segment: first.answer.id, label: 'w1' },
    { rollout: child, segment: going.calls[1]?.answer.id ?? '', label: 'w2' },
  ]
  await recordTrainer(store, { runId, groupId, rows, hostile: texts.hostile })
  return {
    pictures,
    tasksRun,
    laterRun,
    setRun,
    like,
    other,
    runId,
    parent,
    child,
    parentSession: told.session.id,
    childSession: going.session.id,
  }
}

/** A red pixel. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC',
  'base64',
)

async function recordEvents(
  { recorder, blobs }: Store,
  rolloutId: Id,
  { callId, hostile }: { readonly callId: Id | null; readonly hostile: string },
): Promise<readonly string[]> {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>window.ran=1</script></svg>'
  const digests = await Promise.all([png, Buffer.from(svg), Buffer.from(hostile)].map((bytes) => blobs.put(bytes)))
  const at = (ms: number) => ({ id: newId(), at: ms, rolloutId, sessionId: null })
  await recorder.appendEvent({ ...at(2), kind: 'stage', stage: 'boot', phase: 'start', durationMs: null })
  await recorder.appendEvent({ ...at(900), kind: 'stage', stage: 'boot', phase: 'end', durationMs: 898 })
  await recorder.appendEvent({
    ...at(1000),
    kind: 'exec',
    role: 'agent',
    command: `make test # ${hostile}`,
    outcome: 'exited',
    exitCode: 2,
    signal: null,
    durationMs: 1500,
    stdout: hostile,
    stderr: 'x'.repeat(20_000),
    truncatedBytes: 70_000,
    callId,
  })
  await recorder.appendEvent({
    ...at(3000),
    kind: 'tool_result',
    callId,
    toolCallId: 't1',
    tool: hostile,
    status: 'ok',
    durationMs: 20,
    result: hostile,
    images: digests.map((sha256) => ({ sha256, mediaType: 'image/svg+xml', width: 320, height: 200 })),
  })
  await recorder.appendEvent({
    ...at(3100),
    kind: 'egress',
    host: 'packages.example',
    port: 443,
    allowed: false,
    rule: 'deny',
  })
  await recorder.appendEvent({ ...at(3200), kind: 'custom', name: hostile, data: { note: hostile } })
  for (let nth = 0; nth < 200; nth += 1) {
    await recorder.appendEvent({ ...at(4000 + nth), kind: 'label', name: `note ${nth}`, value: 'y'.repeat(4000) })
  }
  return digests
}

/** A trainer that used one row twice, left the other out, and told numbers of twenty steps. */
async function recordTrainer(
  { catalogue, trainer }: Store,
  o: {
    readonly runId: Id
    readonly groupId: Id
    readonly rows: readonly { readonly rollout: Id; readonly segment: Id; readonly label: string }[]
    readonly hostile: string
  },
): Promise<void> {
  const { runId, groupId, rows } = o
  await catalogue.openRound({
    groupId,
    runId,
    round: 0,
    spec: {
      n: 3,
      over: 0,
      minUsable: 1,
      stopWhen: { kind: 'usable', count: 3 },
      carry: false,
      topUp: 0,
      deadlineMs: null,
      labels: {},
      horizon: null,
      onCut: { horizon: 'verify', budget: 'verify', context_overflow: 'verify', agent_timeout: 'verify' },
      fork: null,
    },
  })
  const none = { members: 0, sampledTokens: 0 }
  const members = rows.map(({ rollout, label }, slot) => ({
    rolloutId: rollout,
    slot: 10 + slot,
    attempt: 0,
    end: 'completed' as const,
    out: null,
    verdict: { id: newId(), status: 'scored' as const, reward: slot },
    cut: null,
    sampledTokens: 100 + 50 * slot,
    weights: [label],
  }))
  const lost = { ...members[0], rolloutId: newId(), slot: 12, out: 'infra' as const, verdict: null }
  await catalogue.settleRound({
    groupId,
    runId,
    round: 0,
    state: 'settled',
    stoppedBy: null,
    members: [...members, { attempt: 0, end: 'infra', cut: null, sampledTokens: 0, ...lost }],
    usable: 2,
    censored: none,
    carried: none,
    neverBegan: 0,
  })
  const { incarnation } = await trainer.attach(runId, { resumeStep: null, consumer: 'c' })
  for (const ordinal of [1, 2, 3]) {
    const step = ordinal === 1 ? null : ordinal - 2
    await trainer.announce(runId, { incarnation, ordinal, label: `w${ordinal}`, step })
  }
  const asked = { incarnation, consumer: 'c', maxGroups: 1, leaseMs: 60_000, ids: [newId()] }
  const [claim] = await trainer.claim(runId, asked)
  const named = rows.map(({ rollout, segment, label }) => ({ row: `${rollout}:${segment}`, segment, label }))
  await trainer.handOut(
    claim?.id ?? '',
    named.map(({ row, segment, label }) => ({ rowId: row, segmentIds: [segment], labels: [label] })),
  )
  const said = { claimId: claim?.id ?? '', use: 0, tokens: null, advantage: -0.5, rewardUsed: 0, reason: null }
  const [used = '', left = ''] = named.map(({ row }) => row)
  await trainer.dispose(runId, {
    incarnation,
    dispositions: [
      { ...said, row: used, step: 3, outcome: 'used' },
      { ...said, row: used, step: 4, use: 1, outcome: 'used', tokens: [2, 5] },
      { ...said, row: left, step: 4, outcome: 'filtered', advantage: null, rewardUsed: null, reason: o.hostile },
    ],
  })
  for (let step = 1; step <= 20; step += 1) {
    const values = { loss: 1 / step, reward: step / 20, ...(step === 7 ? {} : { [`kl ${o.hostile}`]: step % 3 }) }
    await trainer.putMetrics(runId, {
      incarnation,
      step,
      values,
      mismatch: step > 10 ? { mean_abs: 0.01 * step } : null,
    })
  }
}
