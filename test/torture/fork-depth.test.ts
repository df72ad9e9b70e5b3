/** A chain of forks: each child goes on from a place of its parent's own. */
import Docker from 'dockerode'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { referenceAgent } from '../../src/rollout/index.ts'
import type { SessionLog } from '../../src/trajectory/index.ts'
import { forkOf, logsOf, promptOf, sampledIn, trainedIn, treeAfter, turn } from '../rollout/fork-support.ts'
import { openOwnWorld, terminalTask, type World } from '../rollout/world.ts'

let world: World
beforeAll(async () => {
  world = await openOwnWorld()
})
afterAll(() => world[Symbol.asyncDispose]())

test('children of children stand at their places five deep, each on the box of the one before, and train what they sampled', async () => {
  const task = await terminalTask('log-forensics')
  const words = ['one', 'two', 'three', 'four', 'five', 'six']
  await world.script(task, [...words.map(turn), { say: 'done' }])
  const docker = new Docker()
  const run = (more: object = {}) =>
    world.run({ tasks: [task], harness: referenceAgent(), snapshotEvery: 1, infraRetries: 0, ...more })
  /** Layers of the box that was kept behind a call. */
  async function layersAfter(log: SessionLog, place: number): Promise<number> {
    const events = await world.store.recorder.events({ rolloutId: log.session.rolloutId ?? '' })
    const callId = log.calls[place]?.intent.id
    const taken = events.find((event) => event.kind === 'snapshot' && event.callId === callId)
    const { RootFS } = await docker.getImage(taken?.kind === 'snapshot' ? taken.image : 'none').inspect()
    return RootFS.Layers?.length ?? 0
  }
  let summary = await run()
  let [log] = await logsOf(world, summary)
  const [then] = [log]
  if (then === undefined) throw new Error('no log')
  const rootId = summary.rollouts[0]?.rolloutId ?? ''
  const layers = await layersAfter(then, 0)
  const family = [then]
  for (const level of [1, 2, 3, 4, 5]) {
    summary = await run(forkOf(summary, log, level, 'state'))
    expect(summary.rollouts).toMatchObject([{ end: 'completed', taints: [], verdict: { status: 'scored' } }])
    ;[log] = await logsOf(world, summary)
    if (log === undefined) throw new Error('no log')
    expect(await promptOf(world, log.calls[level]?.intent.id)).toEqual(
      await promptOf(world, then.calls[level]?.intent.id),
    )
    expect(await treeAfter(world, summary.rollouts[0]?.rolloutId ?? '', log.calls[5]?.intent.id)).toBe(
      await treeAfter(world, rootId, then.calls[5]?.intent.id),
    )
    expect(await layersAfter(log, level)).toBe(layers + level)
    family.push(log)
  }
  const sum = (of: (log: SessionLog) => number) => family.reduce((all, one) => all + of(one), 0)
  expect(sum(trainedIn)).toBe(sum(sampledIn))
  const sampled = family.flatMap(({ segments }) => segments.filter(({ origin }) => origin === 'sampled'))
  expect(new Set(sampled.map(({ id }) => id)).size).toBe(sampled.length)
})
