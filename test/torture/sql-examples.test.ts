/** The example tasks, each with its golds, its cheats and its weak attempts, on its database and neighbours. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { type NamedScript, openTaskBox, sql } from '../../src/envs/index.ts'
import { verdictIn } from '../../src/envs/sql/sql.fixture.ts'
import { sized } from './size.ts'

const folder = join(import.meta.dirname, '../../examples/tasks/sql')
const { signal } = new AbortController()

describe.runIf(await requireDocker())('the example tasks', () => {
  let sandbox: SandboxProvider
  beforeAll(() => {
    sandbox = dockerProvider()
  })
  afterAll(() => sandbox.close())

  test.concurrent.each(
    sized(['clinic', 'metro', 'shop', 'staff', 'telemetry', 'orchard', 'harbor'], ['clinic', 'orchard', 'harbor']),
  )('%s', async (name) => {
    const tasks = await sql.load(join(folder, `${name}.json`))
    const [first] = tasks
    if (first === undefined) throw new Error(`no task of ${name}`)
    await using box = await openTaskBox(sandbox, sql.box(first), { labels: { role: 'probe' }, signal })
    await sql.setup({ task: first, attempt: { id: 'attempt' }, box, signal, emit: () => undefined })
    for (const task of tasks) {
      const rewards: Record<string, unknown> = {}
      for (const [role, submission] of await submissionsOf(task)) {
        const verdict = await verdictIn(box, task, submission)
        rewards[role] = verdict.reward ?? verdict.reason
      }
      const wanted = Object.keys(rewards).map((role) => [role, /^(oracle|gold)/.test(role) ? 1 : 0])
      expect({ task: task.name, ...rewards }).toEqual({ task: task.name, ...Object.fromEntries(wanted) })
    }
  })
})

async function submissionsOf(task: Task): Promise<readonly (readonly [string, string | null])[]> {
  const { scripts } = sql
  const named = [
    await scripts.oracle(task),
    ...(await scripts.solutions(task)),
    ...(await scripts.cheats(task)),
    ...(await scripts.distractors(task)),
  ]
  return [['nothing', null], ...named.map((script) => [script.name, submissionOf(script)] as const)]
}

function submissionOf({ script }: NamedScript): string {
  const step = script.steps.find((one) => 'tool' in one && one.tool === 'submit_sql')
  return step !== undefined && 'args' in step ? String(step.args['sql']) : ''
}
