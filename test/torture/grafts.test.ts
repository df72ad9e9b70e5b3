/** Forks by graft of command-line agents, unmodified: each resumes its session in a copy of its box. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { claudeCode, codex, type Harness, opencode, piHarness, qwenCode } from '../../src/rollout/index.ts'
import {
  forkOf,
  logsOf,
  mainOf,
  promptOf,
  saidAfter,
  sampledIn,
  steps,
  trainedIn,
  treeAfter,
} from '../rollout/fork-support.ts'
import { openOwnWorld, terminalTask, type World } from '../rollout/world.ts'
import { sized } from './size.ts'

describe('a fork by graft', () => {
  let world: World
  let task: Task
  beforeAll(async () => {
    world = await openOwnWorld()
    task = await terminalTask('log-forensics')
    await world.script(task, steps)
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const run = (harness: Harness, more: object = {}) =>
    world.run({ tasks: [task], harness, snapshotEvery: 1, infraRetries: 0, ...more })

  const short = [
    { harness: piHarness(), places: [1, 2, 3] },
    // What its own tools say holds an id of each process.
    { harness: codex(), places: sized([1, 2, 3], [2]), saysOther: true },
  ]
  const others = [
    { harness: opencode(), places: [1, 2, 3] },
    { harness: claudeCode(), places: [1, 2, 3] },
  ]
  test.each<{ readonly harness: Harness; readonly places: readonly number[]; readonly saysOther?: boolean }>(
    sized([...short, ...others], short),
  )(
    '$harness.name stands where its parent stood at the turns $places, in tokens and in files, and acts on them',
    async ({ harness, places, saysOther = false }) => {
      const parent = await run(harness)
      const parentId = parent.rollouts[0]?.rolloutId ?? ''
      const [then] = await logsOf(world, parent)
      if (then === undefined) throw new Error('no log')
      for (const at of places) {
        const child = await run(harness, forkOf(parent, then, at, 'graft'))
        const childId = child.rollouts[0]?.rolloutId ?? ''
        const [now] = await logsOf(world, child)
        if (now === undefined) throw new Error('no log')
        const [ended] = child.rollouts
        expect(ended, ended?.detail).toMatchObject({ end: 'completed', taints: [], verdict: { status: 'scored' } })
        // Its first request is its parent's, and so are the later ones: nothing of the resumption is in any.
        for (const [index, call] of mainOf(now).entries()) {
          const own = await promptOf(world, mainOf(then)[index]?.intent.id)
          if (index === at || (index > at && !saysOther)) expect(await promptOf(world, call.intent.id)).toEqual(own)
          expect(Buffer.from(call.intent.body).toString()).not.toContain('fork-')
        }
        expect(mainOf(now)).toHaveLength(mainOf(then).length)
        expect(await treeAfter(world, childId, mainOf(now)[at]?.intent.id)).toBe(
          await treeAfter(world, parentId, mainOf(then)[at]?.intent.id),
        )
        // No key of a session is in a box: of the parent's none can come along.
        const keys = 'grep -rl pdk_ /tmp /workspace /home 2>/dev/null; echo looked'
        expect(await saidAfter(world, { rolloutId: childId, callId: mainOf(now)[at]?.intent.id }, keys)).toBe(
          'looked\n',
        )
        expect(trainedIn(now)).toBe(sampledIn(now))
        expect(sampledIn(now)).toBeLessThan(sampledIn(then))
        const grafted = now.events.filter((event) => event.kind === 'grafted')
        expect(grafted).toHaveLength(mainOf(then).length - at)
        const [first] = grafted
        const received = await world.store.blobs.get(first?.kind === 'grafted' ? first.sha256 : '')
        expect(Buffer.from(received ?? []).toString()).toContain('fork-')
      }
    },
  )

  test('a version or a program that was not measured is refused by name', async () => {
    const parent = await run(piHarness())
    const [log] = await logsOf(world, parent)
    const from = forkOf(parent, log, 2, 'graft')
    const other = piHarness({ version: '0.87.0' })
    await expect(run({ ...piHarness(), version: '0.87.0' }, from)).rejects.toMatchObject({ code: 'FORK_REFUSED' })
    expect([other.resumes, other.replays, qwenCode().resumes]).toEqual([undefined, undefined, undefined])
  })
})
