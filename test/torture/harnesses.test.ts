import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { registerEnvironments, terminal } from '../../src/envs/index.ts'
import { claudeCode, cline, codex, geminiCli, type Harness, opencode, piHarness } from '../../src/rollout/index.ts'
import { openOwnWorld, terminalTask, type World } from '../rollout/world.ts'

/** Each is fetched from npm once (100 to 400 MB), which is why this is not among the quick tests. */
describe('black-box harnesses, unmodified', () => {
  let world: World
  let task: Task

  beforeAll(async () => {
    world = await openOwnWorld()
    task = await terminalTask('log-forensics')
  })
  afterAll(() => world[Symbol.asyncDispose]())

  const presets = [
    { harness: piHarness(), dialect: 'chat', forks: [] },
    { harness: cline(), dialect: 'chat', forks: [] },
    // Its history drops the `cd` to where its shell is already: one answer is told otherwise, and what follows goes on.
    { harness: claudeCode(), dialect: 'messages', forks: ['harness_rewrite'] },
    { harness: codex(), dialect: 'responses', forks: [] },
    { harness: geminiCli(), dialect: 'gemini', forks: [] },
    { harness: opencode(), dialect: 'chat', forks: [] },
  ]
  test.each<{ readonly harness: Harness; readonly dialect: string; readonly forks: readonly string[] }>(presets)(
    '$harness.name solves a task in a box, over $dialect',
    async ({ harness, dialect, forks }) => {
      const { script } = await terminal.scripts.oracle(task)
      await world.script(task, script.steps)
      const summary = await world.run({ tasks: [task], harness })
      expect(summary.rollouts).toMatchObject([
        { end: 'completed', verdict: { status: 'scored', reward: 1 }, taints: [] },
      ])
      const rolloutId = summary.rollouts[0]?.rolloutId ?? ''
      const [session] = await world.store.recorder.sessions({ rolloutId })
      const { calls } = await world.store.recorder.session(session?.id ?? '')
      expect(new Set(calls.map((call) => call.intent.dialect))).toEqual(new Set([dialect]))
      expect(calls.every((call) => call.commit?.outcome.kind === 'complete')).toBe(true)
      expect(calls.flatMap((call) => call.commit?.forks.map(({ cause }) => cause) ?? [])).toEqual(forks)
    },
  )

  test.each([{ harness: cline() }, { harness: opencode() }])(
    '$harness.name finds the tools of an environment over MCP',
    async ({ harness }) => {
      const place = join(import.meta.dirname, '../../examples/environments/receipts')
      const environment = (await registerEnvironments([join(place, 'environment.ts')])).get('receipts')
      const tasks = await environment.load(join(place, 'tasks/bakery.json'))
      for (const one of tasks) await world.script(one, (await environment.scripts.oracle(one)).script.steps)
      const summary = await world.run({ environment, tasks, harness })
      expect(summary.rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored', reward: 1 } }])
      const events = await world.store.recorder.events({ rolloutId: summary.rollouts[0]?.rolloutId ?? '' })
      const results = events.filter((event) => event.kind === 'tool_result')
      expect(results).toMatchObject([
        { tool: 'look_up', status: 'ok', callId: expect.any(String) },
        { tool: 'submit', status: 'ok', callId: expect.any(String) },
      ])
    },
  )
})
