/** What a trainer takes for a group is a group, also after members were lost (invariant I11). */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { groupSpec } from '../../src/rollout/index.ts'
import { type RecordedRollout, recordRollouts, sampledPerRollout } from '../../src/testing/exporter/index.ts'
import {
  builtInExporters,
  type ExportRequest,
  type Manifest,
  openStore,
  runExport,
  type Store,
} from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type TrainerRow, trainerRules } from './trainer-groups.ts'

const rlFormats = builtInExporters.all().filter(({ purpose }) => purpose === 'rl')
const counting = rlFormats.filter(({ trainer }) => trainer.equalGroups).map(({ name }) => name)

/** A store of its own with rollouts, and what an export of it gives a trainer. */
async function opened(rollouts: readonly RecordedRollout[]) {
  const directory = tempDir()
  const store = await openStore(join(directory, 'data'))
  const ids = await recordRollouts(store, rollouts)
  let made = 0
  const run = async (exporter: string, query: ExportRequest['query'] = {}) => {
    const out = join(directory, `out-${(made += 1)}`)
    const manifest = await runExport({ reader: store, exporter, out, query, paddockVersion: '0.0.0' })
    const rule = trainerRules[exporter]
    if (rule === undefined) throw new Error(`nobody here knows how the trainer of ${exporter} finds groups`)
    return { manifest, rows: await rule.read(out), group: rule.group }
  }
  /** What is recorded of how many members each group was to have. */
  const askFor = async (n: number) => {
    for (const { id: runId } of await store.catalogue.runs()) {
      for (const { id: groupId } of await store.catalogue.groups(runId)) {
        await store.catalogue.openRound({ groupId, runId, round: 0, spec: groupSpec({ n }) })
      }
    }
  }
  return {
    ids,
    run,
    askFor,
    entries: () => readdir(directory),
    taskOf: ({ rolloutId }: TrainerRow) => rollouts[ids.indexOf(rolloutId)]?.task ?? 'none',
    [Symbol.asyncDispose]: async () => {
      await (store satisfies Store).close()
    },
  }
}
type Opened = Awaited<ReturnType<typeof opened>>

/** (reward - mean) / (sample deviation + 1e-6) in the plainest way. */
function advantagesOf(rewards: readonly number[]): readonly number[] {
  const mean = rewards.reduce((a, b) => a + b) / rewards.length
  const variance = rewards.map((reward) => (reward - mean) ** 2).reduce((a, b) => a + b) / (rewards.length - 1)
  return rewards.map((reward) =>
    rewards.length < 2 || variance === 0 ? 0 : (reward - mean) / (variance ** 0.5 + 1e-6),
  )
}

function expectTrueGroups(
  { taskOf }: Opened,
  groups: readonly (readonly TrainerRow[])[],
  size: number | null,
  count: number,
): void {
  expect(groups).toHaveLength(count)
  for (const group of groups) {
    expect(new Set(group.map(taskOf)).size).toBe(1)
    if (size !== null) expect(group).toHaveLength(size)
    const expected = advantagesOf(group.map(({ reward }) => reward))
    for (const [index, { advantage }] of group.entries()) expect(advantage).toBeCloseTo(expected[index] ?? 0, 9)
  }
}

function notExported({ tokens }: Manifest): number {
  return Object.values(tokens.not_exported).reduce((sum, count) => sum + count, 0)
}

describe('24 rollouts of 6 tasks, of which two were lost', () => {
  const lost = new Map<number, Partial<RecordedRollout>>([
    [5, { end: 'infra', reward: 'infra_error' }],
    [18, { reward: 'unscorable' }],
  ])
  let world: Opened
  beforeAll(async () => {
    world = await opened(
      Array.from({ length: 24 }, (_, index) => {
        const task = `task-${Math.floor(index / 4)}`
        return { task, group: task, reward: (index * 7) % 5, ...lost.get(index) }
      }),
    )
  })
  afterAll(() => world[Symbol.asyncDispose]())

  it.each(rlFormats.map(({ name }) => name))('%s: no group of its trainer mixes tasks', async (format) => {
    const { manifest, rows, group } = await world.run(format, { exactGroupSize: 3 })
    expectTrueGroups(world, group(rows, 3, 6), 3, 6)
    // Four whole groups gave one member each, and two were lost before.
    expect(manifest.tokens).toMatchObject({
      sampled: 24 * sampledPerRollout,
      trainable: 18 * sampledPerRollout,
      not_exported: {
        group_surplus: 4 * sampledPerRollout,
        rollout_unfinished: sampledPerRollout,
        verdict_null: sampledPerRollout,
      },
    })
    expect(manifest.groups.sizes).toEqual({ 3: 6 })
    const surplus = manifest.rollouts.dropped.filter(({ reason }) => reason === 'group_surplus')
    expect(surplus.map(({ rollout_id: id }) => world.ids.indexOf(id))).toEqual([3, 11, 15, 23])
  })

  it.each(rlFormats.map(({ name }) => name))('%s: groups that are not whole can be left out', async (format) => {
    const { manifest, rows, group } = await world.run(format, { exactGroupSize: 4 })
    expectTrueGroups(world, group(rows, 4, 4), 4, 4)
    expect(manifest.tokens.not_exported).toMatchObject({ group_dropped: 6 * sampledPerRollout })
    expect(notExported(manifest) + manifest.tokens.trainable).toBe(manifest.tokens.sampled)
  })

  it.each(counting)('%s counts rows, so groups of two sizes are refused by name', async (format) => {
    const before = await world.entries()
    await expect(world.run(format)).rejects.toMatchObject({
      code: 'EXPORT_REFUSED',
      message: expect.stringMatching(/not of one size: most have 4, not [0-9a-f-]{36} \(3\), [0-9a-f-]{36} \(3\)$/),
      fix: 'Add `--exact-group-size 3`, which keeps the most tokens to train. 3: 6 groups, 18 rollouts, 108 tokens; 4: 4 of 6 groups, 16 rollouts, 96 tokens.',
      data: { need: 'equalGroups', sizes: ['4 of 4', '2 of 3'] },
    })
    expect(await world.entries()).toEqual(before)
  })

  it.each(rlFormats.filter(({ trainer }) => !trainer.equalGroups).map(({ name }) => name))(
    '%s names its groups, so they may be of two sizes',
    async (format) => {
      const { rows, group } = await world.run(format)
      expect(rows).toHaveLength(22)
      expectTrueGroups(world, group(rows, 4, 6), null, 6)
    },
  )

  it('a limit leaves out whole groups where groups have a size', async () => {
    const { manifest, rows, group } = await world.run('trl', { exactGroupSize: 3, limit: 8 })
    expectTrueGroups(world, group(rows, 3, 2), 3, 2)
    expect(manifest.rollouts.dropped.filter(({ detail }) => detail === 'limit 8')).toHaveLength(12)
    await expect(world.run('trl', { limit: 6 })).rejects.toMatchObject({
      fix: 'Add `--exact-group-size 4`: the limit then leaves out whole groups.',
      data: { need: 'equalGroups' },
    })
  })
})

describe('groups of two sizes: the fix names the size that keeps the most tokens, and what each choice keeps', () => {
  const group = (task: string, rewards: readonly number[]) => rewards.map((reward) => ({ task, group: task, reward }))

  it.each(counting)('%s: of a collection that was stopped, the size of the whole groups', async (format) => {
    await using world = await opened([
      ...['a', 'b', 'c'].flatMap((task) => group(task, [0, 1, 0, 1, 0, 1, 0, 1])),
      ...group('d', [0, 1, 0, 1]),
    ])
    const told = (size: number, share: string, rollouts: number) =>
      `${size}: ${share}4 groups, ${rollouts} rollouts, ${rollouts * sampledPerRollout} tokens`
    await expect(world.run(format)).rejects.toMatchObject({
      fix: `Add \`--exact-group-size 8\`, which keeps the most tokens to train. ${told(8, '3 of ', 24)}; ${told(4, '', 16)}.`,
    })
    for (const [size, count] of [
      [8, 3],
      [4, 4],
    ] as const) {
      const { manifest } = await world.run(format, { exactGroupSize: size })
      expect(manifest.groups.exported).toBe(count)
      expect(manifest.tokens.trainable).toBe(size * count * sampledPerRollout)
    }
  })

  it('counts what a size makes of groups whose variance is asked for', async () => {
    await using world = await opened([
      ...group('a', [1, 1, 0]),
      ...group('b', [1, 1, 0]),
      ...group('c', [0, 1]),
      ...group('d', [0, 1]),
      ...group('e', [0, 1]),
      ...group('f', [0, 1]),
    ])
    await expect(world.run('trl')).rejects.toMatchObject({ fix: expect.stringContaining('--exact-group-size 2`') })
    await expect(world.run('trl', { dropZeroVariance: true })).rejects.toMatchObject({
      fix: expect.stringContaining('2: 4 of 6 groups, 8 rollouts'),
    })
    const { manifest } = await world.run('trl', { dropZeroVariance: true, exactGroupSize: 2 })
    expect(manifest.groups.exported).toBe(4)
  })
})

describe('two groups of 24, one of which lost two members', () => {
  it.each(rlFormats.map(({ name }) => name))('%s: 22 of each stay, and no group mixes tasks', async (format) => {
    await using world = await opened(
      Array.from({ length: 48 }, (_, index) => {
        const task = `task-${Math.floor(index / 24)}`
        const reward = index === 3 || index === 17 ? ('infra_error' as const) : index % 3
        return { task, group: task, reward }
      }),
    )
    const { rows, group, manifest } = await world.run(format, { exactGroupSize: 22 })
    expectTrueGroups(world, group(rows, 22, 2), 22, 2)
    expect(manifest.tokens.not_exported).toEqual({
      group_surplus: 2 * sampledPerRollout,
      verdict_null: 2 * sampledPerRollout,
    })
  })
})

describe('8 groups of 4, each of which lost one', () => {
  let world: Opened
  beforeAll(async () => {
    world = await opened(
      Array.from({ length: 32 }, (_, index) => {
        const task = `task-${Math.floor(index / 4)}`
        return { task, group: task, reward: index % 4 === 2 ? ('infra_error' as const) : (index * 7) % 5 }
      }),
    )
    await world.askFor(4)
  })
  afterAll(() => world[Symbol.asyncDispose]())

  it.each(counting)(
    '%s would find 6 groups of 4 in them, so they are refused until somebody says 3',
    async (format) => {
      await expect(world.run(format)).rejects.toMatchObject({
        code: 'EXPORT_REFUSED',
        message: expect.stringContaining('they have 3 where 4 were asked for'),
        fix: expect.stringContaining('--exact-group-size 3'),
        data: { need: 'equalGroups', asked: ['4'] },
      })
      const { rows, group } = await world.run(format, { exactGroupSize: 3 })
      expectTrueGroups(world, group(rows, 3, 8), 3, 8)
    },
  )

  it('no other trainer is told so, and none where all that were asked for are there', async () => {
    expect((await world.run('verl')).rows).toHaveLength(24)
    await using whole = await opened([{ reward: 1 }, { reward: 0 }])
    await whole.askFor(2)
    expect((await whole.run('trl')).rows).toHaveLength(2)
  })
})

describe('rollouts of several rows', () => {
  const branching = [
    { task: 'a', group: 'a', reward: 1, branch: true },
    { task: 'a', group: 'a', reward: 0 },
    { task: 'b', group: 'b', reward: 0 },
    { task: 'b', group: 'b', reward: 1, branch: true },
  ]
  const single = rlFormats.filter(({ trainer }) => trainer.oneRowPerRollout).map(({ name }) => name)

  it.each(single)('%s takes one row for one rollout, so they are refused by name', async (format) => {
    await using world = await opened(branching)
    await expect(world.run(format)).rejects.toMatchObject({
      code: 'EXPORT_REFUSED',
      message: expect.stringContaining(world.ids[0] ?? '-'),
      fix: expect.stringContaining('--one-row-per-rollout longest'),
      data: { rollouts: [world.ids[0], world.ids[3]] },
    })
  })

  it.each(rlFormats.flatMap(({ name }) => (['longest', 'last'] as const).map((rule) => [name, rule] as const)))(
    '%s: the %s row stays and trains all that it holds, the other stands in the manifest',
    async (format, oneRowPerRollout) => {
      await using world = await opened(branching)
      const { manifest, rows, group } = await world.run(format, { oneRowPerRollout })
      expectTrueGroups(world, group(rows, 2, 2), 2, 2)
      expect(manifest.rows).toMatchObject({ count: 4, left_out: { row_surplus: 2 } })
      // Of nine tokens the row holds six: its own answer and the one before the fork.
      expect({ ...manifest.tokens, by_answer_length: null }).toEqual({
        by_answer_length: null,
        sampled: 30,
        trainable: 24,
        masked: {},
        not_exported: { row_surplus: 6 },
      })
      expect(manifest.selection).toMatchObject({ one_row_per_rollout: oneRowPerRollout })
    },
  )

  it('the longest row has the most tokens, the last one the last call', async () => {
    await using world = await opened(branching.slice(0, 1))
    const tokensOf = async (oneRowPerRollout: 'longest' | 'last') =>
      (await world.run('verl', { oneRowPerRollout })).manifest.rows.tokens
    expect([await tokensOf('longest'), await tokensOf('last')]).toEqual([10, 9])
  })

  it.each(single.filter((name) => name !== 'nemo-rl'))(
    '%s: with advantages given all rows stay, and their parts add up to the rollout',
    async (format) => {
      await using world = await opened(branching)
      const { manifest, rows } = await world.run(format, { oneRowPerRollout: 'split-advantage' })
      expect(rows).toHaveLength(6)
      expect(manifest.rules).toMatchObject({ reward_weight: '1/K', advantage: 'grpo' })
      for (const [index, id] of world.ids.entries()) {
        const parts = rows.filter(({ rolloutId }) => rolloutId === id).map(({ advantage }) => advantage)
        const pair = branching.slice(index - (index % 2), index - (index % 2) + 2).map(({ reward }) => reward)
        expect(parts.reduce((a, b) => a + b, 0)).toBeCloseTo(advantagesOf(pair)[index % 2] ?? 0, 9)
      }
    },
  )

  it('nemo-rl takes a rollout as one chain, which advantages do not change', async () => {
    await using world = await opened(branching)
    await expect(world.run('nemo-rl', { oneRowPerRollout: 'split-advantage' })).rejects.toMatchObject({
      data: { need: 'contiguousPrefix' },
    })
  })
})

describe('rows with nothing to train', () => {
  const rollouts: readonly RecordedRollout[] = [
    { task: 'a', group: 'a', reward: 1 },
    { task: 'a', group: 'a', reward: 0 },
    { task: 'a', group: 'a', reward: 5, logprobs: 'none' },
  ]
  it.each(rlFormats.map(({ name }) => name))(
    '%s leaves them out, and their member out of the group',
    async (format) => {
      await using world = await opened(rollouts)
      const { manifest, rows, group } = await world.run(format)
      expectTrueGroups(world, group(rows, 2, 1), 2, 1)
      expect({ ...manifest.tokens, by_answer_length: null }).toEqual({
        by_answer_length: null,
        sampled: 18,
        trainable: 12,
        masked: {},
        not_exported: { nothing_to_train: 6 },
      })
      expect(manifest.rollouts.dropped).toEqual([
        { rollout_id: world.ids[2], reason: 'nothing_to_train', detail: 'its tokens are masked: missing_logprob' },
      ])
    },
  )
})

describe('an answer without a logprob on each token', () => {
  it('is refused where answers are trained whole, and context by request', async () => {
    await using world = await opened([{ logprobs: 'gap' }, {}])
    await expect(world.run('nemo-rl')).rejects.toMatchObject({
      data: { need: 'logprobOnEachToken' },
      fix: expect.stringContaining('--whole-answers'),
    })
    const { manifest } = await world.run('nemo-rl', { wholeAnswersOnly: true })
    expect(manifest.tokens).toMatchObject({ trainable: 9, masked: { missing_logprob: 3 } })
    const byToken = await world.run('trl')
    expect(byToken.manifest.tokens).toMatchObject({ trainable: 11, masked: { missing_logprob: 1 } })
  })
})

it('nemo-rl finds groups by prompt: one prompt in two groups is refused by name', async () => {
  await using world = await opened([{ group: 'a' }, { group: 'b' }])
  await expect(world.run('nemo-rl')).rejects.toMatchObject({
    code: 'EXPORT_REFUSED',
    data: { need: 'groupsByPrompt' },
    fix: expect.stringContaining('skyrl'),
  })
})
