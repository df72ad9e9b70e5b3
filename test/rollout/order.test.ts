/** Which members of a run go first, and how many go on while verifiers are slow. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PaddockError, type Task } from '../../src/core/index.ts'
import { terminal } from '../../src/envs/index.ts'
import { referenceAgent, type RunProgress } from '../../src/rollout/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { openWorld, terminalTask, waitingFor } from './world.ts'

/** Three tasks that differ in their instruction. */
async function threeTasks(): Promise<readonly Task[]> {
  const task = await terminalTask('log-forensics')
  return ['a', 'b', 'c'].map((name) => ({ ...task, name, digest: `${name}${task.digest.slice(1)}`, instruction: name }))
}

test('earlier groups go first, their second attempts too, and work that waits for a verifier holds new rollouts back', async () => {
  await using world = await openWorld()
  const directory = tempDir()
  const file = join(directory, 'go')
  const tasks = await threeTasks()
  for (const task of tasks) await world.script(task, [{ say: 'done' }])
  const begun: string[] = []
  const ended: string[] = []
  let collected = 0
  let begunWhileBlocked = 0
  let spoilt = false
  const waiting = waitingFor(file, terminal)
  const summary = await world.run({
    environment: {
      ...waiting,
      setup: async (context) => {
        if (spoilt || context.task.name !== 'a') return terminal.setup(context)
        spoilt = true
        throw new PaddockError('BOX_DEAD', 'the first one of a')
      },
    },
    tasks,
    harness: referenceAgent(),
    n: 2,
    limits: { agent: 1, boot: 1, verify: 1 },
    onProgress: (progress: RunProgress) => {
      if (progress.type === 'ended') ended.push(progress.rollout.task.name)
      if (progress.type !== 'stage') return
      if (progress.stage === 'setup' && progress.phase === 'start') {
        begun.push(`${progress.task}${progress.slot}.${progress.attempt}`)
      }
      if (progress.stage !== 'collect' || progress.phase !== 'end') return
      collected += 1
      if (collected < 4) return
      begunWhileBlocked ||= begun.length
      void writeFile(file, '')
    },
  })
  // The spoilt one, the one that is being verified, and three that may be under way behind it.
  expect(begunWhileBlocked).toBe(5)
  const second = begun.find((one) => one.endsWith('.1'))
  expect(second).toMatch(/^a/)
  // Which of those that are claimed together comes to its box first is open; what is claimed is not.
  expect(new Set(begun.slice(0, 5))).toEqual(new Set(['a0.0', 'a1.0', 'b0.0', 'b1.0', second]))
  expect(new Set(begun.slice(5))).toEqual(new Set(['c0.0', 'c1.0']))
  expect(ended[0]).toBe('a')
  // The next one was at the verifier already; behind it they went in their order.
  expect(ended.slice(2)).toEqual(ended.slice(2).toSorted())
  expect(ended).toHaveLength(7)
  expect(summary.groups.map(({ size }) => size)).toEqual([2, 2, 2])
})
