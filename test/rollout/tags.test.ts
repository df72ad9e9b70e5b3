/** Models that call tools by tags in their text: the conversation is append-only, the verdict knows the format. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { sql } from '../../src/envs/index.ts'
import { reExSql, skyRlSql, type TagProtocol, tagAgent } from '../../src/rollout/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { openWorld, type World } from './world.ts'

const right = 'SELECT id, name FROM customers WHERE id NOT IN (SELECT customer_id FROM orders) ORDER BY id'

describe.runIf(await requireDocker())('agents that speak in tags', () => {
  let world: World
  let task: Task
  beforeAll(async () => {
    world = await openWorld()
    const tasks = await sql.load(join(import.meta.dirname, '../../examples/tasks/sql/shop.json'))
    const found = tasks.find(({ name }) => name === 'shop-never-ordered')
    if (found === undefined) throw new Error('no task')
    const weighed = { exploration: { weight: 0.2, statements: 2 }, formatWeight: 0.3 }
    task = { ...found, data: { ...(found.data as object), neighbours: { subsets: 0, rebuilds: 0 }, ...weighed } }
  })
  afterAll(() => world[Symbol.asyncDispose]())

  async function attempt(protocol: TagProtocol, answers: readonly string[]) {
    // The engine counts tool calls, of which there are none here: each turn is known by what the last result says is left.
    for (const [i, say] of answers.entries()) {
      const left = protocol.maxTurns - i
      const instruction = i === 0 ? task.instruction : `${left} turns are left.`
      await world.engine.control('/scripts', {
        instruction,
        candidates: [{ name: 'only', weight: 0, steps: [{ say }] }],
      })
    }
    const summary = await world.run({ tasks: [task], environment: sql, harness: tagAgent(protocol), n: 1 })
    const [rollout] = summary.rollouts
    const events = await world.store.recorder.events({ rolloutId: rollout?.rolloutId ?? '' })
    const tools = events.flatMap((event) => (event.kind === 'tool_result' ? [`${event.tool} ${event.status}`] : []))
    return { ...rollout, tools }
  }
  const think = '<think>hm</think>\n'

  test('SkyRL-SQL: looks around, solves, and earns format and exploration', async () => {
    const { end, verdict, tools, taints } = await attempt(skyRlSql, [
      `${think}<sql>SELECT name FROM sqlite_master</sql>`,
      `${think}<sql>SELECT count(*) FROM orders</sql>`,
      `${think}<solution>${right}</solution>`,
    ])
    expect({ end, taints, tools }).toEqual({
      end: 'completed',
      taints: [],
      tools: ['execute_sql ok', 'execute_sql ok', 'submit_sql ok'],
    })
    expect(verdict).toMatchObject({ reward: 1, components: { result: 1, format: 1, exploration: 1 } })
  })

  test('a turn that breaks the format costs its share, an invented observation is none', async () => {
    const { verdict, tools } = await attempt(skyRlSql, [
      `${think}<observation>the answer is 7</observation><sql>SELECT 1</sql>`,
      `${think}<solution>${right}</solution>`,
    ])
    expect(tools).toEqual(['submit_sql ok'])
    expect(verdict).toMatchObject({ status: 'scored', components: { result: 1, format: 0.5, exploration: 0 } })
    expect(verdict?.reward).toBeCloseTo(0.5 + 0.3 * 0.5)
  })

  test('solutions by the dozen are none: the turns run out, the reward is 0', async () => {
    const spam = `${think}${`<solution>${right}</solution>`.repeat(2)}`
    // The first closing tag ends the turn, so that the spam has to come from within it.
    const within = `${think}<solution><solution>${right}</solution>`
    const { end, verdict } = await attempt(reExSql, [spam, within, ...Array.from({ length: 8 }, () => 'I give up.')])
    expect(end).toBe('horizon')
    expect(verdict).toMatchObject({ status: 'scored', reward: 0, components: { submitted: 0 } })
  })
})
