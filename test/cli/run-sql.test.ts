/** `paddock run --env sql` from the tasks to a scored rollout, by the command that a person types. */
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './here.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

const hasDocker = await requireDocker()

const tasks = fileURLToPath(new URL('../../examples/tasks/sql', import.meta.url))

const directory = tempDir()

interface Shown {
  readonly rollout: {
    readonly verdicts: readonly {
      readonly status: string
      readonly reward: number
      readonly components: object
      readonly steps: readonly { readonly value: number }[]
    }[]
  }
  readonly events: readonly { readonly kind: string; readonly tool?: string; readonly status?: string }[]
}

it.runIf(hasDocker)('scores what the reference agent submits, with components and the tools it called', async () => {
  const chosen = ['--task', 'shop-never-ordered', '--task', 'clinic-close-visits']
  const ended = await paddock(['run', tasks, '--env', 'sql', ...chosen, '--n', '2', '--data', directory, '--json'])
  expect(ended.code, ended.err).toBe(0)
  const { summary } = JSON.parse(ended.out) as {
    summary: {
      rollouts: readonly { rolloutId: string; end: string; task: { name: string }; verdict: { reward: number } }[]
    }
  }
  expect(summary.rollouts).toHaveLength(4)
  for (const { rolloutId, end, task } of summary.rollouts) {
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
    // A value on each call, where the task asks for them.
    expect(verdict?.steps.map(({ value }) => value)).toEqual(task.name === 'shop-never-ordered' ? [1, 1, 1] : [])
  }
})

it.runIf(hasDocker)('leaves out the tasks that a validation refuted', async () => {
  const set = JSON.parse(await readFile(join(tasks, 'metro.json'), 'utf8'))
  const [good] = set.tasks
  const wrong = {
    ...good,
    name: 'metro-wrong-gold',
    question: 'Which?',
    gold: 'SELECT 1 WHERE 0',
    weak: [],
  }
  await copyFile(join(tasks, set.database.script), join(directory, 'metro.py'))
  const database = { ...set.database, script: 'metro.py' }
  const file = join(directory, 'set.json')
  const quarantine = join(directory, 'quarantine.json')
  await writeFile(file, JSON.stringify({ ...set, database, tasks: [good, wrong] }))
  const validated = await paddock(['validate', file, '--env', 'sql', '--quarantine', quarantine, '--json'])
  expect(validated.code, validated.err).toBe(1)
  const { tasks: kept } = JSON.parse(await readFile(quarantine, 'utf8'))
  expect(kept).toMatchObject([{ name: 'metro-wrong-gold' }])
  expect(kept[0].problems.join()).toContain('gold_error')
  const ended = await paddock(['run', file, '--env', 'sql', '--quarantine', quarantine, '--data', directory, '--json'])
  expect(ended.code, ended.err).toBe(0)
  const { summary } = JSON.parse(ended.out) as { summary: { groups: readonly { task: { name: string } }[] } }
  expect(summary.groups.map(({ task }) => task.name)).toEqual([good.name])
  const none = await paddock(['run', file, '--env', 'sql', '--quarantine', file, '--data', directory])
  expect(none).toMatchObject({ code: 2, err: expect.stringContaining('is not a quarantine file') })
})
