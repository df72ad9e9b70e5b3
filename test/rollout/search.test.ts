/** Search tasks with the reference agent: the tools on the host, the verdict from the host's own record. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { type Environment, searchEnvironment } from '../../src/envs/index.ts'
import { referenceAgent } from '../../src/rollout/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { openWorld, type World } from './world.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

const examples = join(import.meta.dirname, '../../examples/tasks/search')

describe.runIf(await requireDocker())('the reference agent on a search task', () => {
  let directory: string
  let world: World
  let environment: Environment
  let task: Task

  beforeAll(async () => {
    directory = tempDir()
    world = await openWorld()
    environment = searchEnvironment({ directory })
    ;[task] = (await environment.load(join(examples, 'q004'))) as [Task]
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
  })

  const run = (n = 1) => world.run({ tasks: [task], environment, harness: referenceAgent(), n })

  test('the oracle scores 1; each tool result stands in the log with its call, the record among the artifacts', async () => {
    await world.script(task, [...(await environment.scripts.oracle(task)).script.steps])
    const summary = await run(3)
    for (const { end, verdict, taints } of summary.rollouts) {
      expect({ end, verdict, taints }).toMatchObject({
        end: 'completed',
        verdict: { status: 'scored', reward: 1, trust: 'host', components: { em: 1, evidence_recall: 1 } },
        taints: [],
      })
      for (const { sha256 } of verdict?.artifacts ?? []) expect(await world.store.blobs.has(sha256)).toBe(true)
    }
    const events = await world.store.recorder.events({ rolloutId: summary.rollouts[0]?.rolloutId ?? '' })
    const results = events.filter((event) => event.kind === 'tool_result')
    expect(results.map(({ tool, status }) => `${tool} ${status}`)).toEqual([
      'search ok',
      'search ok',
      'search ok',
      'open ok',
      'answer ok',
    ])
    expect(results.every(({ callId }) => callId !== null)).toBe(true)
  })

  test('an answer without a search scores 0, right as it may be', async () => {
    const cheats = await environment.scripts.cheats(task)
    const unread = cheats.find(({ name }) => name === 'cites-what-it-never-read')
    await world.script(task, [...(unread?.script.steps ?? []), { say: 'done' }])
    const summary = await run()
    expect(summary.rollouts).toMatchObject([
      { end: 'completed', verdict: { status: 'scored', reward: 0, components: { em: 1, citations_grounded: 0 } } },
    ])
  })
})
