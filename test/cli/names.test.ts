/** A run and a group that a trainer named can be named to every command that takes an id. */
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { makeTask, newId } from '../../src/core/index.ts'
import { openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './here.ts'

const directory = tempDir()
const data = join(directory, 'data')
const rolloutId = newId()

beforeAll(async () => {
  await using store = await openStore(data)
  const { catalogue } = store
  const task = makeTask({ name: 't', environment: 'none', instruction: '', split: 'train', data: null, source: 'test' })
  await catalogue.putTask(task)
  for (const [run, group, id] of [
    ['my-run', 'step 4/a', rolloutId],
    ['other', 'step 4/b', newId()],
  ] as const) {
    await catalogue.putRun({ id: run, name: run, createdAt: 1, config: {} })
    await catalogue.putGroup({ id: group, runId: run, taskDigest: task.digest, promptVariant: 'default', createdAt: 1 })
    await catalogue.putRollout({ id, runId: run, groupId: group, slot: 0, attempt: 0, harness: 'h', createdAt: 1 })
    await catalogue.startRollout(id, 1)
    await catalogue.endRollout(id, 2, 'completed', '')
  }
})

const asked = async (...args: readonly string[]) => paddock([...args, '--data', data])

it.each([
  ['list', 'rollouts', '--run', 'my-run', '--json'],
  ['list', 'groups', '--run', 'my-run', '--json'],
  ['list', 'tasks', '--run', 'my-run', '--json'],
  ['show', 'my-run', '--json'],
  ['show', 'step 4/a', '--json'],
  ['drift', 'my-run', '--json'],
  ['search', 'word', '--run', 'my-run', '--json'],
  ['export', '--run', 'my-run', '--format', 'jsonl', '--out', join(directory, 'by-run'), '--json'],
  ['export', '--group', 'step 4/a', '--format', 'jsonl', '--out', join(directory, 'by-group'), '--json'],
])('paddock %s %s takes the name', async (...args) => {
  const { code, err, out } = await asked(...args)
  expect([code, err]).toEqual([0, expect.not.stringContaining('not')])
  if (args[0] === 'list' && args[1] === 'rollouts') expect(JSON.parse(out).rollouts).toMatchObject([{ id: rolloutId }])
})

it('names what is there where a name is of something else, or of nothing', async () => {
  expect((await asked('show', 'my-ran')).err).toMatch(/NOT_FOUND: "my-ran" is neither the name of a run or a group nor/)
  expect(
    (await asked('export', '--rollout', 'my-run', '--format', 'jsonl', '--out', join(directory, 'no'))).err,
  ).toMatch(/my-run is a run, not a rollout\.? Fix: .*paddock list rollouts --run my-run/s)
})
