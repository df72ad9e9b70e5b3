/** Rollouts that go on from another one: its past is played again in a fresh box, and nothing of it is trained twice. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { type Harness, referenceAgent, type RunSummary, shellHarness } from '../../src/rollout/index.ts'
import { buildRows, type ForkFrom, type SessionLog } from '../../src/trajectory/index.ts'
import { openWorld, terminalTask, type World } from './world.ts'

/** Each turn changes the files, and shows them. */
const turn = (word: string) => ({
  shell: `echo ${word} >> turns && mkdir -p ${word} && sha256sum turns | tee ${word}/sum`,
})
const steps = [turn('one'), turn('two'), turn('three'), turn('four'), { say: 'done' }]

/** Asks about one thing after the other, and acts on no answer. */
const ask = (i: string) =>
  `curl -sSf "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -d "{\\"model\\":\\"$OPENAI_MODEL\\",\\"messages\\":[{\\"role\\":\\"user\\",\\"content\\":\\"turn ${i}\\"}]}" > /tmp/answer || exit 9`
const blackBox = shellHarness({
  command: `for i in 1 2 3 4; do ${ask('$i of $(cat turns 2>/dev/null | wc -l)')}; echo $i >> turns; done`,
})

describe('a fork by replay', () => {
  let world: World
  let task: Task
  beforeAll(async () => {
    world = await openWorld()
    task = await terminalTask('log-forensics')
  })
  afterAll(() => world[Symbol.asyncDispose]())

  /** Agents' logs of a run, by slot and attempt. */
  async function logsOf({ rollouts }: RunSummary): Promise<readonly SessionLog[]> {
    return Promise.all(
      rollouts.map(async ({ rolloutId }) => {
        const [session] = await world.store.recorder.sessions({ rolloutId })
        return world.store.recorder.session(session?.id ?? '')
      }),
    )
  }

  async function parentOf(harness: Harness) {
    const summary = await world.run({ tasks: [task], harness, snapshotEvery: 1 })
    const [log] = await logsOf(summary)
    const [rollout] = summary.rollouts
    if (log === undefined || rollout === undefined) throw new Error('no rollout')
    expect(rollout.end).toBe('completed')
    const from = (at: number, onDivergence: ForkFrom['onDivergence'] = 'refuse'): ForkFrom => {
      return { rolloutId: rollout.rolloutId, callId: log.calls[at]?.intent.id ?? 'none', way: 'replay', onDivergence }
    }
    return { log, rollout, from }
  }
  const fork = (harness: Harness, from: ForkFrom, n = 1) =>
    world.run({ tasks: [task], harness, n, snapshotEvery: 1, infraRetries: 0, group: { fork: from } })

  /** The task's directory as it was after a call: names and contents. */
  async function treeAfter(rolloutId: string, callId: string | undefined): Promise<string> {
    const events = await world.store.recorder.events({ rolloutId })
    const taken = events.find((event) => event.kind === 'snapshot' && event.callId === callId)
    if (taken?.kind !== 'snapshot') throw new Error(`no snapshot after ${callId ?? 'nothing'}`)
    await using box = await world.sandbox.createBox({ image: taken.image, profile: 'user', labels: { role: 'probe' } })
    const { stdout } = await box.exec({ command: 'find . -type f | sort | xargs sha256sum' })
    return Buffer.from(stdout).toString()
  }

  const sampled = (log: SessionLog) =>
    log.segments.reduce((sum, { origin, tokens }) => sum + (origin === 'sampled' ? tokens.length : 0), 0)
  const trained = (log: SessionLog) =>
    buildRows(log, { rolloutId: 'r', groupId: 'g', taskDigest: 't' }).rows.reduce(
      (sum, { mask }) => sum + mask.reduce((all, bit) => all + bit, 0),
      0,
    )

  test.each([
    { who: 'the reference agent', harness: referenceAgent(), places: [1, 3] },
    { who: 'a black box', harness: blackBox, places: [2] },
  ])(
    '$who stands where its parent stood, in tokens and in files, and goes on by itself',
    async ({ harness, places }) => {
      await world.script(task, steps)
      const parent = await parentOf(harness)
      for (const at of places) {
        const summary = await fork(harness, parent.from(at), 2)
        expect(summary.rollouts).toMatchObject([{ end: 'completed' }, { end: 'completed' }])
        expect(summary.rollouts.map(({ verdict }) => verdict?.status)).toEqual(['scored', 'scored'])
        for (const [index, log] of (await logsOf(summary)).entries()) {
          const rolloutId = summary.rollouts[index]?.rolloutId ?? ''
          const [then, now] = [parent.log.calls[at], log.calls[at]]
          expect((await world.engine.generation(now?.intent.id)).promptTokenIds).toEqual(
            (await world.engine.generation(then?.intent.id)).promptTokenIds,
          )
          expect(await treeAfter(rolloutId, log.calls[at - 1]?.intent.id)).toBe(
            await treeAfter(parent.rollout.rolloutId, parent.log.calls[at - 1]?.intent.id),
          )
          expect(trained(log)).toBe(sampled(log))
          const { labels } = await world.store.catalogue.rollout(rolloutId)
          expect(labels).toMatchObject({ 'fork.rollout': parent.rollout.rolloutId, 'fork.call': then?.intent.id })
        }
      }
    },
  )

  test('a tool whose words change ends a member as infra without a reward, or branches where that is asked for', async () => {
    await world.script(task, [{ shell: 'date +%N' }, turn('two'), { say: 'done' }])
    const parent = await parentOf(referenceAgent())
    const [refused] = (await fork(referenceAgent(), parent.from(2))).rollouts
    expect(refused).toMatchObject({ end: 'infra', verdict: null, sampledTokens: expect.any(Number) as number })
    expect(refused?.detail).toContain('REPLAY_DIVERGED')
    const branched = await fork(referenceAgent(), parent.from(2, 'branch'))
    expect(branched.rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored' } }])
    const [log] = await logsOf(branched)
    const replayed = log?.events.flatMap((event) => (event.kind === 'replay' ? [event.phase] : []))
    expect(replayed).toEqual(['answered', 'diverged'])
  })

  test('a tool that says the same and leaves other files is seen at the fork, where the box was kept', async () => {
    await world.script(task, [{ shell: 'date +%N > made; echo said' }, turn('two'), { say: 'done' }])
    const parent = await parentOf(referenceAgent())
    const [refused] = (await fork(referenceAgent(), parent.from(1))).rollouts
    expect(refused).toMatchObject({ end: 'infra', verdict: null })
    expect(refused?.detail).toMatch(/BOX_DIVERGED.*1 files are other than then: \/workspace\/made/s)
    const branched = await fork(referenceAgent(), parent.from(1, 'branch'))
    expect(branched.rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored' } }])
    const events = await world.store.recorder.events({ rolloutId: branched.rollouts[0]?.rolloutId ?? '' })
    expect(events.flatMap((event) => (event.kind === 'replay' ? [event.phase] : []))).toContain('box_diverged')
  })

  test('what could not be replayed is refused before anything is started', async () => {
    await world.script(task, steps)
    const parent = await parentOf(referenceAgent())
    const unknown: Harness = { ...referenceAgent(), replays: undefined as never }
    const cases: readonly [Harness, ForkFrom, RegExp][] = [
      [blackBox, parent.from(1), /of the harness reference, and this is shell/],
      [{ ...referenceAgent(), version: '9' }, parent.from(1), /of reference 1, and this is 9/],
      [unknown, parent.from(1), /nobody knows whether reference 1 asks the same/],
      [referenceAgent(), { ...parent.from(1), callId: parent.rollout.rolloutId }, /no call/],
    ]
    for (const [harness, from, why] of cases) {
      await expect(fork(harness, from)).rejects.toMatchObject({
        code: 'FORK_REFUSED',
        message: expect.stringMatching(why) as string,
      })
    }
  })
})
