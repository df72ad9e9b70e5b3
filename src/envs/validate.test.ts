import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import { PaddockError, sha256 } from '../core/index.ts'
import { hacked, scored, unscored } from '../reward/index.ts'
import type { SandboxProvider } from '../sandbox/index.ts'
import type { attempt } from './attempt.ts'
import { loadEach } from './load-each.ts'
import { terminal } from './terminal/index.ts'
import { validateTasks } from './validate.ts'

const toml = '[environment]\nnetwork_mode = "no-network"\n'
const whole = {
  'task.toml': toml,
  'instruction.md': 'Do it.\n',
  'environment/Dockerfile': 'FROM paddock-base\n',
  'tests/test.sh': '',
  'solution/solve.sh': '',
}
const facts = (evidence = '') => ({
  verifier: { id: 'x', version: '1', sha256: sha256('x') },
  trust: 'shared' as const,
  evidence,
})
const number = (reward: number, evidence = '') => scored(reward, facts(evidence))

/** Verdicts by task, of its solution and of the agent that does nothing, in the order of their repeats. */
const verdicts: Record<
  string,
  { oracle: Awaited<ReturnType<typeof attempt>>[]; idle: Awaited<ReturnType<typeof attempt>>[] }
> = {
  good: { oracle: [number(1), number(1)], idle: [number(0.5), number(0.5)] },
  accepts: { oracle: [number(1), number(1)], idle: [number(1, 'ok'), number(1)] },
  fails: {
    oracle: [number(0, 'one\nE   assert 1 == 2\n\n1 failed\nwarning: tmux\n'), number(0)],
    idle: [number(0), number(0)],
  },
  tampers: { oracle: Array(2).fill(hacked(0, facts('ok\ntampered: program /bin/x'))), idle: [number(0), number(0)] },
  silent: { oracle: [number(1), number(1)], idle: Array(2).fill(unscored('unscorable', 'says nothing', facts())) },
  flaky: { oracle: [number(1), number(0)], idle: [number(0), number(0)] },
  'flaky-idle': { oracle: [number(1), number(1)], idle: [number(0), number(0.5)] },
  infra: { oracle: [number(1), unscored('infra_error', 'the box died', facts())], idle: [number(0), number(0)] },
  unproven: { oracle: [], idle: [number(0), number(0)] },
}

let root: string
beforeAll(async () => {
  root = tempDir()
  for (const name of [...Object.keys(verdicts), 'broken', 'no-image', 'half']) {
    for (const [path, text] of Object.entries(whole)) {
      await mkdir(dirname(join(root, name, path)), { recursive: true })
      await writeFile(join(root, name, path), text)
    }
  }
  await writeFile(join(root, 'broken/task.toml'), 'not = [')
  await rm(join(root, 'half/task.toml'))
  await rm(join(root, 'unproven/solution'), { recursive: true })
  await mkdir(join(root, 'no-task'))
})

const sandbox = {
  ensureImage: async (recipe: { readonly name?: string }) => {
    if (recipe.name === 'no-image') throw new PaddockError('IMAGE_BUILD_FAILED', 'no registry\nlog')
    return { tag: 't', id: 'i', recipeDigest: 'd', fresh: false }
  },
} as unknown as SandboxProvider

async function validated(only: readonly string[] = [], published = true) {
  const count = new Map<string, number>()
  const { signal } = new AbortController()
  return validateTasks({
    environment: terminal,
    ...(await loadEach(terminal, root, { signal, only })),
    sandbox,
    signal,
    published,
    repeat: 2,
    attempt: async ({ task, script, onRan }) => {
      const who = script.name === 'solution' ? 'oracle' : 'idle'
      const key = `${task.name} ${who}`
      const turn = count.get(key) ?? 0
      count.set(key, turn + 1)
      if (task.name === 'fails')
        onRan?.([{ tool: 'shell', input: {}, status: 'error', text: 'a\nb: not found\n[exit code 127]' }])
      const verdict = verdicts[task.name]?.[who][turn]
      if (verdict === undefined) throw new Error(`nothing for ${key}`)
      return verdict
    },
  })
}

it('each task of a folder has its row, with the cause of what is not as its author intends', async () => {
  const rows = await validated()
  expect(Object.fromEntries(rows.map(({ name, status, problems }) => [name, [status, ...problems]]))).toEqual({
    good: ['proven'],
    accepts: [
      'refuted',
      'null_agent null-agent: must score less than 1, got scored 1: ok',
      'null_agent null-agent: must score less than 1, got scored 1',
    ],
    fails: [
      'refuted',
      'oracle solution: must score 1, got its script ended as error (b: not found / [exit code 127]); scored 0: E   assert 1 == 2',
      'oracle solution: must score 1, got its script ended as error (b: not found / [exit code 127]); scored 0',
    ],
    tampers: ['refuted', 'oracle solution: must score 1, got hacked 0: tampered: program /bin/x'],
    silent: ['refuted', 'null_agent null-agent: unscorable: says nothing'],
    flaky: [
      'flaky',
      'oracle solution: not the same each time: scored 1, scored 0',
      'oracle solution: must score 1, got scored 0',
    ],
    'flaky-idle': ['flaky', 'null_agent null-agent: not the same each time: scored 0, scored 0.5'],
    infra: ['infra', 'oracle solution: infra_error: the box died'],
    unproven: ['unproven', expect.stringMatching(/^TASK_INVALID: .*solution/)],
    broken: ['refused', expect.stringContaining('task.toml:1:')],
    half: ['refused', expect.stringContaining('task.toml: does not exist')],
    'no-image': ['unbuilt', 'IMAGE_BUILD_FAILED: no registry'],
  })
  expect(rows.map(({ name }) => name)).toEqual(rows.map(({ name }) => name).toSorted())
  expect(rows.flatMap(({ proofs }) => proofs).every(({ role }) => role === 'oracle' || role === 'null_agent')).toBe(
    true,
  )
})

it('a task without cheats or solution is run all the same, and refuted for what it lacks', async () => {
  const rows = await validated(['good', 'unproven'], false)
  expect(Object.fromEntries(rows.map(({ name, status, problems }) => [name, [status, ...problems]]))).toEqual({
    good: [
      'refuted',
      expect.stringMatching(/^TASK_INVALID: .*knows no cheat/),
      'null_agent null-agent: must score 0, got scored 0.5',
    ],
    unproven: [
      'refuted',
      expect.stringMatching(/^TASK_INVALID: .*solution/),
      expect.stringMatching(/^TASK_INVALID: .*knows no cheat/),
    ],
  })
  expect(rows[0]?.proofs.filter(({ role }) => role === 'oracle').map(({ round, holds }) => [round, holds])).toEqual([
    [1, true],
    [2, true],
  ])
})

it('only those that are asked for, and a name that is not there is refused', async () => {
  expect((await validated(['good'])).map(({ name }) => name)).toEqual(['good'])
  expect((await validated(['broken'])).map(({ status }) => status)).toEqual(['refused'])
  await expect(validated(['good', 'none'])).rejects.toMatchObject({ code: 'TASK_INVALID' })
})

it('one broken task stops whoever wants the whole set', async () => {
  await expect(terminal.load(root)).rejects.toMatchObject({ code: 'TASK_INVALID' })
})
