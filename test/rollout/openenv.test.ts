/** An environment that an OpenEnv server serves, with an agent program that knows nothing of it: tools over MCP, its own number. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { type Environment, openEnvEnvironment } from '../../src/envs/index.ts'
import { qwenCode } from '../../src/rollout/index.ts'
import { openWorld, type World } from './world.ts'

const place = join(import.meta.dirname, '../lab/openenv')

describe('Qwen Code, unmodified, in an environment of somebody else', () => {
  let world: World
  let task: Task
  beforeAll(async () => {
    world = await openWorld()
    ;[task] = (await served().load(join(place, 'tasks'))) as [Task]
  })
  afterAll(() => world[Symbol.asyncDispose]())

  const served = (fault = ''): Environment =>
    openEnvEnvironment({
      name: 'lock',
      version: '1',
      server: { command: [process.execPath, join(place, 'replaying.ts'), '{port}', fault] },
    })
  const wrongFirst = [
    { tool: 'look', args: {} },
    { tool: 'try_code', args: { code: 5 } },
    { tool: 'try_code', args: { code: 137 } },
    { say: 'It is open.' },
  ]

  test('earns what the environment’s own code says, each attempt by a server of its own', async () => {
    await world.script(task, wrongFirst)
    const { rollouts } = await world.run({ environment: served(), tasks: [task], harness: qwenCode(), n: 2 })
    for (const { rolloutId, ...rollout } of rollouts) {
      expect(rollout).toMatchObject({ end: 'completed', taints: [], verdict: { status: 'scored', reward: 0.75 } })
      const events = await world.store.recorder.events({ rolloutId })
      const told = events.filter((event) => event.kind === 'tool_result')
      expect(told.map(({ tool, status, result }) => [tool, status, result])).toEqual([
        ['look', 'ok', '{"digits":3}'],
        ['try_code', 'ok', 'higher'],
        ['try_code', 'ok', 'open\n[The episode is over.]'],
      ])
      expect(told.every(({ callId }) => callId !== null)).toBe(true)
    }
    expect(rollouts).toHaveLength(2)
  })

  test('has no number where the server fails', async () => {
    await world.script(task, wrongFirst)
    const more = { harness: qwenCode(), infraRetries: 0 }
    const { rollouts } = await world.run({ environment: served('dies'), tasks: [task], ...more })
    const none = { end: 'infra', verdict: null, detail: expect.stringMatching(/^ENVIRONMENT_SERVER_FAILED/) }
    expect(rollouts).toMatchObject([none])
  })
})
