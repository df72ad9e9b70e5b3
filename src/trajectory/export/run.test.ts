import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { newId } from '../../core/index.ts'
import type { Selector } from '../rows-contract.ts'
import { openStore } from '../store/index.ts'
import { type ExportRequest, runExport } from './index.ts'
import type { Manifest } from './index.ts'
import { type RecordedRollout, recordRollouts, sampledPerRollout } from '../../testing/exporter/index.ts'

interface Exported {
  readonly ids: readonly string[]
  /** Exports and gives manifest and lines of the first file. */
  readonly run: (request: Partial<ExportRequest>) => Promise<{ manifest: Manifest; text: string }>
  /** What lies beside the exports. */
  readonly entries: () => Promise<readonly string[]>
}

async function withStore(
  rollouts: readonly RecordedRollout[],
  use: (exported: Exported) => Promise<void>,
): Promise<void> {
  const directory = tempDir()
  let made = 0
  await using store = await openStore(join(directory, 'data'))
  const ids = await recordRollouts(store, rollouts)
  await use({
    ids,
    entries: () => readdir(directory),
    async run(request) {
      const out = join(directory, `out-${(made += 1)}`)
      const manifest = await runExport({ reader: store, exporter: 'jsonl', out, paddockVersion: '1.2.3', ...request })
      return { manifest, text: await readFile(join(out, manifest.files[0]?.name ?? ''), 'utf8') }
    },
  })
}

const refusal = (word: string): object =>
  expect.objectContaining({ code: 'EXPORT_REFUSED', message: expect.stringContaining(word) })

describe('runExport', () => {
  const unsound: readonly RecordedRollout[] = [
    {},
    { reward: null },
    { reward: 'infra_error', end: 'infra' },
    { taint: 'engine_error' },
    { end: null },
    { reward: 0 },
  ]

  it.each(['verl', 'openai'])('leaves unusable rollouts out of %s, with reasons and their tokens', async (exporter) => {
    await withStore(unsound, async ({ ids, run }) => {
      const { manifest } = await run({ exporter })
      expect(manifest.rollouts).toMatchObject({ selected: 6, exported: 2 })
      const reasons = new Map(manifest.rollouts.dropped.map((drop) => [drop.rollout_id, drop.reason]))
      expect(reasons.get(ids[1] ?? '')).toBe('verdict_null')
      expect(reasons.get(ids[3] ?? '')).toBe('tainted')
      expect(reasons.get(ids[4] ?? '')).toBe('rollout_unfinished')
      expect(reasons.size).toBe(4)
      const { sampled, trainable, not_exported: left } = manifest.tokens
      expect([sampled, trainable]).toEqual([6 * sampledPerRollout, 2 * sampledPerRollout])
      expect(Object.values(left).reduce((a, b) => a + b, 0)).toBe(4 * sampledPerRollout)
    })
  })

  it.each(['verl', 'trl', 'openai', 'sharegpt', 'dpo'])(
    'refuses rows of several policies in %s, and writes them policy by policy',
    async (exporter) => {
      await withStore([{ policy: 'coder' }, { policy: 'critic' }], async ({ run }) => {
        await expect(run({ exporter })).rejects.toEqual(refusal('rows of the policies coder and critic are mixed'))
        const { manifest } = await run({ exporter, query: { policy: 'critic' } })
        expect(manifest.rows.count).toBe(1)
      })
    },
  )

  it('refuses rows of several policies in a file for imitation that has no logprobs', async () => {
    const rollouts = [
      { policy: 'coder', logprobs: 'none' },
      { policy: 'critic', logprobs: 'none' },
    ] as const
    await withStore(rollouts, async ({ run }) => {
      await expect(run({ exporter: 'openai' })).rejects.toEqual(refusal('policies coder and critic'))
    })
  })

  it('keeps every rollout in jsonl and says which are usable', async () => {
    await withStore(unsound, async ({ ids, run }) => {
      const { manifest, text } = await run({})
      const rows = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
      expect(rows.map((row) => row['rollout_id'])).toEqual(ids)
      expect(rows.map((row) => row['usable'])).toEqual([true, false, false, false, false, true])
      expect(rows[2]?.['unusable_reasons']).toEqual(['verdict_null', 'rollout_unfinished'])
      expect(rows.map((row) => row['reward'])).toEqual([1, null, null, 1, 1, 0])
      expect(rows[0]?.['messages']).toMatchObject([{ content: 'question 0' }, {}, {}, { content: 'answer 1' }])
      expect(manifest).toMatchObject({ paddock_version: '1.2.3', selection: { include_tainted: true } })
      expect({ ...manifest.tokens, by_answer_length: null }).toEqual({
        by_answer_length: null,
        sampled: 36,
        trainable: 36,
        masked: {},
        not_exported: {},
      })
    })
  })

  it.each(['jsonl', 'verl', 'openai'])('tells in %s by the same word why a rollout has no rows', async (exporter) => {
    const rowless = [
      { end: null },
      { end: 'infra', reward: 'infra_error' },
      { reward: null },
      { taint: 'engine_error' },
    ] as const
    const reasons = ['rollout_unfinished', 'rollout_unfinished', 'verdict_null', 'tainted']
    await withStore([{}, ...rowless.map((one) => ({ ...one, turns: 0 }))], async ({ ids, run }) => {
      const { manifest } = await run({ exporter })
      const told = manifest.rollouts.dropped.map((drop) => [drop.rollout_id, drop.reason])
      expect(told).toEqual(reasons.map((reason, index) => [ids[index + 1], reason]))
    })
  })

  it.each(['jsonl', 'verl'])(
    'tells in %s that nothing of a finished rollout without a call trains',
    async (exporter) => {
      await withStore([{}, { turns: 0 }], async ({ ids, run }) => {
        const { manifest } = await run({ exporter })
        expect(manifest.rollouts.dropped).toEqual([
          { rollout_id: ids[1], reason: 'nothing_to_train', detail: 'it has no rows' },
        ])
      })
    },
  )

  it('counts rollouts, not rows, and says what the rewards are of', async () => {
    const rollouts = [{ group: 'a' }, { group: 'a', reward: 0 }, { group: 'b' }]
    await withStore(rollouts, async ({ run }) => {
      const { manifest } = await run({ exporter: 'verl' })
      expect(manifest.groups).toMatchObject({ selected: 2, exported: 2, sizes: { 1: 1, 2: 1 } })
      expect(manifest.rewards).toMatchObject({ count: 3, min: 0, max: 1 })
      expect(manifest.rewards.mean).toBeCloseTo(2 / 3)
      const small = await run({ exporter: 'verl', query: { minGroupSize: 2, dropZeroVariance: true } })
      expect(small.manifest.groups.dropped).toMatchObject([{ reason: 'too_small', rollouts: 1 }])
      expect(small.manifest.tokens.not_exported).toEqual({ group_dropped: sampledPerRollout })
    })
  })

  it('leaves the choice among usable rollouts of a group to a selector, and counts what it left out', async () => {
    const rollouts = [{ group: 'a', reward: 0.5 }, { group: 'a', reward: 0 }, { group: 'a' }, { group: 'a', end: null }]
    await withStore(rollouts as readonly RecordedRollout[], async ({ ids, run, entries }) => {
      const asked: number[] = []
      const select: Selector['select'] = ({ rollouts: usable }) => {
        asked.push(usable.length)
        return usable.filter(({ verdict }) => verdict?.reward !== 0.5).map(({ rollout }) => rollout.id)
      }
      const selector: Selector = { name: 'no-halves', apiVersion: 1, version: '2.0.0', select }
      const { manifest } = await run({ exporter: 'verl', query: { selector } })
      expect(asked).toEqual([3])
      expect(manifest.selection).toMatchObject({ selector: 'no-halves 2.0.0' })
      expect(manifest.rollouts.dropped).toContainEqual({
        rollout_id: ids[0],
        reason: 'filtered',
        detail: 'selector no-halves',
      })
      expect(manifest.rewards).toMatchObject({ count: 2, mean: 0.5 })
      expect(manifest.tokens).toMatchObject({ not_exported: { filtered: sampledPerRollout } })
      const before = await entries()
      const wrong: readonly NonNullable<Selector['select']>[] = [
        () => [newId()],
        () => null as never,
        () => {
          throw new Error('no idea')
        },
      ]
      for (const bad of wrong) {
        const refused = run({ exporter: 'verl', query: { selector: { ...selector, select: bad } } })
        await expect(refused).rejects.toMatchObject({ code: 'SELECTOR_INVALID' })
      }
      expect(await entries()).toEqual(before)
    })
  })

  it.each([
    ['verl', [{ tokenizer: 'a' }, { tokenizer: 'b' }], 'two tokenizers', {}],
    ['jsonl', [{ tokenizer: 'a' }, { tokenizer: 'b' }], 'two tokenizers', {}],
    ['verl', [{ logprobKind: 'raw' }, { logprobKind: 'temperature' }], 'mixed', { mixedLogprobKinds: true }],
    ['verl', [{ logprobKind: 'unknown' }], 'unknown kind', { unknownLogprobKind: true }],
    ['verl', [{ verifierVersion: '1' }, { verifierVersion: '2' }], 'verifier counter', { mixedVerifiers: true }],
    ['openai', [{ verifierSha256: 'a' }, { verifierSha256: 'b' }], 'verifier counter', { mixedVerifiers: true }],
    ['verl', [{}, { trust: 'shared' }], "its agent's own box", { sharedVerdicts: true }],
    ['trl', [{ trust: 'unvalidated' }], 'never validated', { unvalidatedVerdicts: true }],
  ] as const)('refuses to mix in %s: %j', async (exporter, rollouts, word, allow) => {
    await withStore(rollouts, async ({ run, entries }) => {
      await expect(run({ exporter })).rejects.toThrow(refusal(word))
      expect(await entries()).toEqual(['data'])
      if (Object.keys(allow).length === 0) return
      const { manifest } = await run({ exporter, allow })
      expect(manifest.rollouts.exported).toBe(rollouts.length)
    })
  })

  it('counts how far verdicts can be trusted, and refuses doubtful ones of rl exports alone', async () => {
    await withStore([{}, { trust: 'in_process' }, { trust: 'host' }, { trust: 'shared' }], async ({ run }) => {
      const refused = run({ exporter: 'verl', allow: { unvalidatedVerdicts: true } })
      await expect(refused).rejects.toMatchObject({ fix: expect.stringMatching(/paddock validate .*paddock rescore/) })
      for (const exporter of ['openai', 'jsonl']) {
        const { manifest } = await run({ exporter })
        expect(manifest.verdicts.trusts).toEqual({ separate: 1, in_process: 1, host: 1, shared: 1 })
      }
    })
  })

  it('tells the share of missing numbers of all selected rollouts, by task and cause', async () => {
    const rollouts = [
      { reward: 1 },
      { reward: 'unscorable' },
      { reward: 1, taint: 'engine_died' },
      { task: 'other', group: 'other', end: 'infra', reward: null },
      { task: 'other', group: 'other', end: null, reward: null },
    ] as const
    await withStore(rollouts, async ({ run }) => {
      for (const exporter of ['verl', 'jsonl']) {
        const { manifest } = await run({ exporter })
        const { tasks, ...all } = manifest.nulls
        const causes = { unscorable: 1, engine_died: 1, infra: 1 }
        expect(all).toEqual({ ended: 4, nulls: 3, share: 3 / 4, causes, versions: {}, empty_tools: 0 })
        expect(Object.values(tasks)).toEqual([
          { ended: 3, nulls: 2, share: 2 / 3, causes: { unscorable: 1, engine_died: 1 } },
          { ended: 1, nulls: 1, share: 1, causes: { infra: 1 } },
        ])
      }
    })
  })

  it('does not read logprob kinds where nobody needs them', async () => {
    await withStore([{ logprobKind: 'raw' }, { logprobKind: 'unknown' }], async ({ run }) => {
      const { manifest } = await run({ exporter: 'openai' })
      expect(manifest.logprob_kinds).toEqual({ raw: 1, unknown: 1 })
    })
  })

  it('counts conversations that the exporter leaves out as filtered', async () => {
    await withStore([{ reward: 1 }, { reward: 0.2 }], async ({ ids, run }) => {
      const { manifest, text } = await run({ exporter: 'openai', options: { minReward: 0.5 } })
      expect(text.trimEnd().split('\n')).toHaveLength(1)
      expect(manifest.tokens).toMatchObject({ trainable: 6, not_exported: { filtered: 6 } })
      expect(manifest.rollouts).toMatchObject({ exported: 1, dropped: [{ rollout_id: ids[1], reason: 'filtered' }] })
    })
  })

  it('names the engines and the policies that sampled', async () => {
    await withStore([{ weightVersion: '12' }], async ({ run }) => {
      const { manifest } = await run({ exporter: 'verl' })
      expect(manifest.policies).toEqual([
        { model: 'counter', adapter: null, weight_version: '12', mixing: 'none', trained_tokens: 6 },
      ])
      expect(manifest.engines).toMatchObject([{ tokenizer: 'counter-bpe', logprob_kind: 'raw', rows: 1 }])
    })
  })

  it.each(['mixed', 'kv_mixed'] as const)('does not train on answers of %s weights unless told', async (mixing) => {
    await withStore([{ mixing }, {}], async ({ ids, run }) => {
      const masked = await run({ exporter: 'verl' })
      expect(masked.manifest).toMatchObject({
        tokens: { sampled: 12, trainable: 6, masked: {}, not_exported: { nothing_to_train: 6 } },
        rollouts: {
          dropped: [{ rollout_id: ids[0], reason: 'nothing_to_train', detail: 'its tokens are masked: mixed_weights' }],
        },
        allowances: { mixed_weights: false },
      })
      // Answers of 3 tokens: half of them are masked.
      const share = { from: 2, to: 3, answers: 4, sampled: 12 }
      expect(masked.manifest.tokens.by_answer_length).toEqual([{ ...share, trainable: 6, share: 0.5 }])
      const trained = (manifest: Manifest) =>
        manifest.policies.flatMap((policy) => (policy.mixing === mixing ? [policy.trained_tokens] : []))
      expect(trained(masked.manifest)).toEqual([])
      const allowed = await run({ exporter: 'verl', allow: { mixedWeights: true } })
      expect(allowed.manifest).toMatchObject({
        tokens: { trainable: 12, masked: {}, by_answer_length: [{ ...share, trainable: 12, share: 1 }] },
        allowances: { mixed_weights: true },
      })
      expect(trained(allowed.manifest)).toEqual([6])
      // An archive keeps what was sampled as it was, and says what it is.
      const archived = await run({ exporter: 'jsonl' })
      expect(archived.manifest.tokens).toMatchObject({ trainable: 12 })
      expect(archived.text).toContain(`"mixing":"${mixing}"`)
    })
  })

  it('stops when told and leaves nothing behind', async () => {
    await withStore([{}, {}], async ({ run, entries }) => {
      const signal = AbortSignal.abort(new Error('enough'))
      await expect(run({ signal })).rejects.toThrow('enough')
      expect(await entries()).toEqual(['data'])
    })
  })
})
