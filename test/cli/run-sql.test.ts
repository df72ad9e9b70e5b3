/** `paddock run --env sql` from the tasks to a scored rollout, by the command that a person types. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { paddock } from './paddock.ts'

const tasks = fileURLToPath(new URL('../../examples/tasks/sql', import.meta.url))

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paddock-run-sql-'))
})
afterAll(async () => {
  await rm(directory, { recursive: true })
})

interface Shown {
  readonly rollout: {
    readonly verdicts: readonly { readonly status: string; readonly reward: number; readonly components: object }[]
  }
  readonly events: readonly { readonly kind: string; readonly tool?: string; readonly status?: string }[]
}

it('scores what the reference agent submits, with components and the tools it called', async () => {
  const chosen = ['--task', 'shop-never-ordered', '--task', 'clinic-close-visits']
  const ended = await paddock(['run', tasks, '--env', 'sql', ...chosen, '--n', '2', '--data', directory, '--json'])
  expect(ended.code, ended.err).toBe(0)
  const { summary } = JSON.parse(ended.out) as {
    summary: { rollouts: readonly { rolloutId: string; end: string; task: string; verdict: { reward: number } }[] }
  }
  expect(summary.rollouts).toHaveLength(4)
  for (const { rolloutId, end } of summary.rollouts) {
    expect(end).toBe('completed')
    const shown = JSON.parse((await paddock(['show', rolloutId, '--json', '--data', directory])).out) as Shown
    const tools = shown.events.filter(({ kind }) => kind === 'tool_result')
    expect(tools.map(({ tool, status }) => `${tool} ${status}`)).toEqual([
      'list_tables ok',
      'execute_sql ok',
      'submit_sql ok',
    ])
    const [verdict] = shown.rollout.verdicts
    expect(verdict).toMatchObject({ status: 'scored', components: { submitted: 1, executes: 1 } })
    expect([0, 1]).toContain(verdict?.reward)
  }
})
