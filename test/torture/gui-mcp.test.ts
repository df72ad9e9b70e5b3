/** A gui task by a harness that was changed in nothing: Qwen Code in the box, the tools over MCP, pictures included. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { qwenCode } from '../../src/rollout/index.ts'
import { openOwnWorld, type World } from '../rollout/world.ts'
import { builtInGui } from '../../src/builtin/index.ts'

const gui = builtInGui({ trustTasks: false })

const examples = join(import.meta.dirname, '../../examples/tasks/gui')

/** The CLI is fetched from npm once, which is why this is not among the quick tests. */
describe('a black-box harness on a gui task', () => {
  let world: World

  beforeAll(async () => {
    world = await openOwnWorld()
  })
  afterAll(() => world[Symbol.asyncDispose]())

  test('Qwen Code reaches the goal through MCP, and what it saw is recorded with its calls', async () => {
    const [task] = await gui.load(join(examples, 'sketch/draw-line-2'))
    if (task === undefined) throw new Error('no task')
    await world.script(task, [...(await gui.scripts.oracle(task)).script.steps])
    const { rollouts } = await world.run({ tasks: [task], environment: gui, harness: qwenCode() })
    expect(rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored', reward: 1 }, taints: [] }])
    const rolloutId = rollouts[0]?.rolloutId ?? ''
    const events = await world.store.recorder.events({ rolloutId })
    const results = events.filter((event) => event.kind === 'tool_result')
    expect(results.map(({ tool, status }) => `${tool} ${status}`)).toEqual([
      'browser_snapshot ok',
      'computer ok',
      'computer ok',
    ])
    expect(results.every(({ callId }) => callId !== null)).toBe(true)
    const [image] = results.flatMap(({ images = [] }) => images)
    const bytes = await world.store.blobs.get(image?.sha256 ?? '')
    // The picture stands in the request that followed, as the harness put it there.
    const [session] = await world.store.recorder.sessions({ rolloutId })
    const { calls } = await world.store.recorder.session(session?.id ?? '')
    const bodies = calls.map(({ intent }) => Buffer.from(intent.body).toString('utf8'))
    expect(bodies.some((body) => body.includes(Buffer.from(bytes).toString('base64')))).toBe(true)
  })
})
