/** Forks of black-box harnesses, unmodified. Which of all presets ask the same when they are started anew: `conform.test.ts`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { codex, type Harness, piHarness, qwenCode, type RunSummary } from '../../src/rollout/index.ts'
import { buildRows, type SessionLog } from '../../src/trajectory/index.ts'
import { sized } from './size.ts'
import { openOwnWorld, terminalTask, type World } from '../rollout/world.ts'

/** Each turn changes the files, and shows them. */
const turn = (word: string) => ({
  shell: `echo ${word} >> turns && mkdir -p ${word} && sha256sum turns | tee ${word}/sum`,
})
const steps = [turn('one'), { think: 'It grows.' }, turn('two'), turn('three'), turn('four'), { say: 'done' }]

describe('a fork by replay', () => {
  let world: World
  let task: Task
  beforeAll(async () => {
    world = await openOwnWorld()
    task = await terminalTask('log-forensics')
    await world.script(task, steps)
  })
  afterAll(() => world[Symbol.asyncDispose]())

  async function logOf({ rollouts }: RunSummary): Promise<SessionLog> {
    const [session] = await world.store.recorder.sessions({ rolloutId: rollouts[0]?.rolloutId ?? '' })
    return world.store.recorder.session(session?.id ?? '')
  }
  const run = (harness: Harness, more: object = {}) =>
    world.run({ tasks: [task], harness, snapshotEvery: 1, infraRetries: 0, ...more })
  const fork = ({ rollouts }: RunSummary, callId: string) => ({
    group: {
      fork: {
        rolloutId: rollouts[0]?.rolloutId ?? '',
        callId,
        way: 'replay' as const,
        onDivergence: 'refuse' as const,
      },
    },
  })

  /** The conversation's own calls. */
  const mainOf = ({ calls }: SessionLog) => calls.filter(({ intent }) => intent.callClass === 'main')

  /** The task's directory as it was after a call: names and contents. */
  async function treeAfter(
    { events, calls }: SessionLog,
    rollout: RunSummary,
    callId: string | undefined,
  ): Promise<string> {
    const told = [
      ...events,
      ...(await world.store.recorder.events({ rolloutId: rollout.rollouts[0]?.rolloutId ?? '' })),
    ]
    const taken = told.find((event) => event.kind === 'snapshot' && event.callId === callId)
    if (taken?.kind !== 'snapshot') throw new Error(`no snapshot after ${callId ?? 'nothing'} of ${calls.length} calls`)
    await using box = await world.sandbox.createBox({ image: taken.image, profile: 'user', labels: { role: 'probe' } })
    const { stdout } = await box.exec({ command: 'find . -type f -not -path "./.git/*" | sort | xargs sha256sum' })
    return Buffer.from(stdout).toString()
  }

  const sampled = ({ segments }: SessionLog) =>
    segments.reduce((sum, { origin, tokens }) => sum + (origin === 'sampled' ? tokens.length : 0), 0)
  const trained = (log: SessionLog) =>
    buildRows(log, {
      rolloutId: 'r',
      groupId: 'g',
      taskDigest: 't',
      trainClasses: ['main', 'subagent', 'title', 'other'],
    })
      .rows.flatMap(({ mask }) => [...mask])
      .reduce((sum, bit) => sum + bit, 0)

  test.each([
    { harness: qwenCode(), places: sized([1, 2, 3], [2]) },
    { harness: piHarness(), places: [1, 2, 3] },
  ])(
    '$harness.name stands where its parent stood at the turns $places, in tokens and in files',
    async ({ harness, places }) => {
      const parent = await run(harness)
      const then = await logOf(parent)
      for (const place of places) {
        const call = mainOf(then)[place]?.intent.id ?? ''
        const child = await run(harness, fork(parent, call))
        expect(child.rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored' }, taints: [] }])
        const now = await logOf(child)
        expect((await world.engine.generation(mainOf(now)[place]?.intent.id)).promptTokenIds).toEqual(
          (await world.engine.generation(call)).promptTokenIds,
        )
        const before = mainOf(now)[place - 1]?.intent.id
        expect(await treeAfter(now, child, before)).toBe(
          await treeAfter(then, parent, mainOf(then)[place - 1]?.intent.id),
        )
        expect(trained(now)).toBe(sampled(now))
        expect(sampled(now)).toBeLessThan(sampled(then))
      }
    },
  )

  test('codex says something else in each process, and is not forked', async () => {
    const harness = codex()
    const parent = await run(harness)
    const call = mainOf(await logOf(parent))[2]?.intent.id ?? ''
    await expect(run(harness, fork(parent, call))).rejects.toMatchObject({ code: 'FORK_REFUSED' })
    const child = await run({ ...harness, replays: true }, fork(parent, call))
    expect(child.rollouts).toMatchObject([{ end: 'infra', verdict: null, taints: ['REPLAY_DIVERGED'] }])
    const told = (await logOf(child)).events.find((event) => event.kind === 'replay' && event.phase === 'diverged')
    expect(told?.kind === 'replay' && told.detail).toContain('Chunk ID')
  })
})
