/** Rollouts that go on from a copy of another one's box: nothing runs again, and nothing is trained twice. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { recordBoxEvents, referenceAgent, shellHarness } from '../../src/rollout/index.ts'
import { dockerInspector, dockerProvider } from '../../src/sandbox/index.ts'
import { forkOf, logsOf, promptOf, sampledIn, steps, trainedIn, treeAfter } from './fork-support.ts'
import { openWorld, terminalTask, type World } from './world.ts'

describe('a fork by state', () => {
  let world: World
  let task: Task
  beforeAll(async () => {
    world = await openWorld()
    task = await terminalTask('log-forensics')
    await world.script(task, steps)
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const run = (more: object = {}) =>
    world.run({ tasks: [task], harness: referenceAgent(), snapshotEvery: 1, infraRetries: 0, ...more })

  test('the reference agent stands where its parent stood at each turn, and acts on it', async () => {
    const parent = await run()
    const [then] = await logsOf(world, parent)
    const parentId = parent.rollouts[0]?.rolloutId ?? ''
    if (then === undefined) throw new Error('no log')
    for (const at of [0, 1, 2, 3]) {
      const child = await run(forkOf(parent, then, at, 'state'))
      expect(child.rollouts).toMatchObject([{ end: 'completed', taints: [], verdict: { status: 'scored' } }])
      const [now] = await logsOf(world, child)
      const childId = child.rollouts[0]?.rolloutId ?? ''
      if (now === undefined) throw new Error('no log')
      expect(await promptOf(world, now.calls[at]?.intent.id)).toEqual(await promptOf(world, then.calls[at]?.intent.id))
      // What it did at its first turn stands on what its parent had done before.
      expect(await treeAfter(world, childId, now.calls[at]?.intent.id)).toBe(
        await treeAfter(world, parentId, then.calls[at]?.intent.id),
      )
      expect([trainedIn(now), now.segments.filter(({ origin }) => origin === 'replayed').length > 0]).toEqual([
        sampledIn(now),
        at > 0,
      ])
      const ran = (await world.store.recorder.events({ rolloutId: childId })).filter(
        ({ kind }) => kind === 'tool_result',
      )
      expect(ran).toHaveLength(steps.length - 1 - at)
    }
  })

  test('children of children stand at their own places, and at those that they share with their parents', async () => {
    const parent = await run()
    const [then] = await logsOf(world, parent)
    const child = await run(forkOf(parent, then, 2, 'state'))
    const [now] = await logsOf(world, child)
    for (const place of [3, 2, 1]) {
      const grandchild = await run(forkOf(child, now, place, 'state'))
      expect(grandchild.rollouts).toMatchObject([{ end: 'completed', taints: [] }])
      const [last] = await logsOf(world, grandchild)
      if (last === undefined) throw new Error('no log')
      expect(await promptOf(world, last.calls[place]?.intent.id)).toEqual(
        await promptOf(world, then?.calls[place]?.intent.id),
      )
      expect(trainedIn(last)).toBe(sampledIn(last))
      expect(await treeAfter(world, grandchild.rollouts[0]?.rolloutId ?? '', last.calls[3]?.intent.id)).toBe(
        await treeAfter(world, parent.rollouts[0]?.rolloutId ?? '', then?.calls[3]?.intent.id),
      )
    }
  })

  test('eight children of one kept call go their own ways in boxes of their own, with another provider', async () => {
    const first = dockerProvider({ onEvent: recordBoxEvents(world.store.recorder) })
    const parent = await run({ sandbox: first, keepSnapshots: { most: 2, mostBytes: 2 ** 30 } })
    await first.close()
    const [then] = await logsOf(world, parent)
    const inspector = dockerInspector()
    const kept = (await inspector.kept()).filter(({ run: id }) => id === parent.runId)
    try {
      expect(kept.map(({ call }) => call)).toEqual(then?.calls.slice(0, 2).map(({ intent }) => intent.id))
      const children = await run({ n: 8, ...forkOf(parent, then, 2, 'state') })
      expect(children.rollouts.map(({ end, verdict }) => [end, verdict?.status])).toEqual(
        Array.from({ length: 8 }, () => ['completed', 'scored']),
      )
      const trees = await Promise.all(
        (await logsOf(world, children)).map((log, at) =>
          treeAfter(world, children.rollouts[at]?.rolloutId ?? '', log.calls[2]?.intent.id),
        ),
      )
      expect(new Set(trees).size).toBe(1)
      // The bound was two: the third box went with its provider.
      await expect(run(forkOf(parent, then, 3, 'state'))).rejects.toMatchObject({
        code: 'FORK_REFUSED',
        message: expect.stringContaining('is gone') as string,
      })
    } finally {
      for (const one of kept.toReversed()) await inspector.drop(one)
    }
  })

  test('what could not stand there is refused by name', async () => {
    const parent = await run({ snapshotEvery: null })
    const [log] = await logsOf(world, parent)
    const from = (at: number, way: 'state' | 'graft') => forkOf(parent, log, at, way)
    const cases: readonly [object, RegExp][] = [
      [from(2, 'state'), /the box was not kept at call/],
      [from(2, 'graft'), /reference 1 can(not)? be grafted/],
      [{ ...from(2, 'state'), harness: { ...referenceAgent(), version: '9' } }, /of reference 1, and this is 9/],
      [
        { ...from(2, 'state'), harness: { ...referenceAgent(), restores: undefined as never } },
        /cannot be given its messages/,
      ],
      [
        { ...from(2, 'state'), harness: shellHarness({ command: 'true' }) },
        /of the harness reference, and this is shell/,
      ],
    ]
    for (const [more, why] of cases) {
      await expect(run(more)).rejects.toMatchObject({
        code: 'FORK_REFUSED',
        message: expect.stringMatching(why) as string,
      })
    }
  })
})
