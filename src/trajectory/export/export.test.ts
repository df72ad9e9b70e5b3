import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { builtInExporters, defineExporter, exporterRegistry, type ExporterSpec, noNeeds } from './index.ts'
import { exporterContract, type ExporterContractOptions } from '../../testing/exporter/index.ts'

const jsonLines = async (file: string): Promise<readonly Record<string, never>[]> =>
  (await readFile(file, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, never>)

/** How each built-in format is read back. A format that is not here fails below. */
const readers: Readonly<Record<string, ExporterContractOptions>> = {
  areal: {
    options: { unknownVersion: 0 },
    decodeRows: async (directory) =>
      (await jsonLines(join(directory, 'trajectories.jsonl'))).map((row) => ({
        rowId: row['row_id'] ?? '',
        rolloutId: row['rollout_id'] ?? '',
        groupId: row['group_id'] ?? '',
        reward: row['rewards'] ?? null,
        advantage: row['advantage'] ?? null,
        tokens: row['input_ids'] ?? [],
        mask: row['loss_mask'] ?? [],
        logprobs: row['logprobs'] ?? [],
      })),
  },
  'nemo-rl': {
    decodeRows: async (directory) =>
      (await jsonLines(join(directory, 'rollouts.jsonl'))).map((row) => {
        const log: readonly { role: string; token_ids: number[]; generation_logprobs?: number[] }[] =
          row['message_log'] ?? []
        const info: Record<string, never> = row['extra_env_info'] ?? {}
        return {
          rowId: info['row_id'] ?? '',
          rolloutId: info['rollout_id'] ?? '',
          groupId: info['group_id'] ?? '',
          reward: row['total_reward'] ?? null,
          advantage: info['advantage'] ?? null,
          tokens: log.flatMap((message) => message.token_ids),
          // A message is trained when it is the assistant's and has logprobs.
          mask: log.flatMap(({ role, token_ids: ids, generation_logprobs: logprobs }) =>
            ids.map(() => (role === 'assistant' && logprobs !== undefined ? 1 : 0)),
          ),
          logprobs: log.flatMap(({ token_ids: ids, generation_logprobs: given }) => given ?? ids.map(() => 0)),
        }
      }),
  },
  skyrl: {
    decodeRows: async (directory) =>
      (await jsonLines(join(directory, 'generator_output.jsonl'))).map((row) => {
        const prompt: number[] = row['prompt_token_ids'] ?? []
        const padding = prompt.map(() => 0)
        return {
          rowId: row['row_id'] ?? '',
          rolloutId: row['rollout_id'] ?? '',
          groupId: row['trajectory_ids']?.['instance_id'] ?? '',
          reward: row['rewards'] ?? null,
          advantage: row['advantage'] ?? null,
          tokens: [...prompt, ...(row['response_ids'] ?? [])],
          mask: [...padding, ...(row['loss_masks'] ?? [])],
          logprobs: [...padding, ...(row['rollout_logprobs'] ?? [])],
        }
      }),
  },
  jsonl: {
    decodeRows: async (directory) =>
      (await jsonLines(join(directory, 'rows.jsonl'))).map((row) => ({
        rowId: row['row_id'] ?? '',
        rolloutId: row['rollout_id'] ?? '',
        groupId: row['group_id'] ?? '',
        reward: row['reward'] ?? null,
        tokens: row['token_ids'] ?? [],
        mask: row['loss_mask'] ?? [],
        logprobs: row['logprobs'] ?? [],
      })),
    decodeConversations: (directory) => jsonLines(join(directory, 'rows.jsonl')) as never,
  },
  // What a pair is made of is tested with recorded groups.
  dpo: {},
  // What they are made of is tested with conversations of their own.
  sharegpt: {},
  'step-labels': {},
  // What steps are made of is tested with conversations of their own.
  atif: {},
  openai: { decodeConversations: (directory) => jsonLines(join(directory, 'messages.jsonl')) as never },
  slime: {
    decodeRows: async (directory) =>
      (await jsonLines(join(directory, 'samples.jsonl'))).map((sample) => {
        const tokens: number[] = sample['tokens'] ?? []
        const padding = tokens.slice(0, tokens.length - (sample['response_length'] ?? 0)).map(() => 0)
        const metadata: Record<string, never> = sample['metadata'] ?? {}
        return {
          rowId: metadata['row_id'] ?? '',
          rolloutId: sample['rollout_id'] ?? '',
          groupId: metadata['group_id'] ?? '',
          reward: sample['reward'] ?? null,
          advantage: metadata['advantage'] ?? null,
          tokens,
          mask: [...padding, ...(sample['loss_mask'] ?? [])],
          logprobs: [...padding, ...(sample['rollout_log_probs'] ?? [])],
        }
      }),
  },
  trl: {
    decodeRows: async (directory) =>
      (await jsonLines(join(directory, 'rollouts.jsonl'))).map((row) => {
        const prompt: number[] = row['prompt_ids'] ?? []
        const padding = prompt.map(() => 0)
        return {
          rowId: row['row_id'] ?? '',
          rolloutId: row['rollout_id'] ?? '',
          groupId: row['group_id'] ?? '',
          reward: row['reward'] ?? null,
          advantage: row['advantage'] ?? null,
          tokens: [...prompt, ...(row['completion_ids'] ?? [])],
          mask: [...padding, ...(row['env_mask'] ?? [])],
          logprobs: [...padding, ...(row['logprobs'] ?? [])],
        }
      }),
  },
  verl: {
    options: { rowGroupRows: 7 },
    decodeRows: async (directory) => {
      const rows = await parquetReadObjects({ file: await asyncBufferFromFile(join(directory, 'rows.parquet')) })
      return rows.map((row) => {
        const prompt = row['prompt_ids'] as number[]
        const padding = prompt.map(() => 0)
        return {
          rowId: row['row_id'] as string,
          rolloutId: row['rollout_id'] as string,
          groupId: row['uid'] as string,
          reward: row['rm_score'] as number,
          advantage: row['advantage'] as number,
          tokens: [...prompt, ...(row['response_ids'] as number[])],
          mask: [...padding, ...(row['response_mask'] as number[])],
          logprobs: [...padding, ...(row['rollout_log_probs'] as number[])],
        }
      })
    },
  },
}

for (const exporter of builtInExporters.all()) {
  const reader = readers[exporter.name]
  if (reader === undefined) throw new Error(`${exporter.name} is built in, and nothing here reads it back`)
  exporterContract(exporter, reader)
}

describe('the registry', () => {
  it('names the formats that exist when asked for one that does not', () => {
    expect(() => builtInExporters.get('vrel')).toThrow(
      expect.objectContaining({
        code: 'EXPORT_FORMAT_UNKNOWN',
        fix: expect.stringContaining(
          'areal, atif, dpo, jsonl, nemo-rl, openai, sharegpt, skyrl, slime, step-labels, trl, verl',
        ),
      }),
    )
  })

  it('refuses two exporters of one name', () => {
    const jsonl = builtInExporters.get('jsonl')
    expect(() => exporterRegistry([jsonl, jsonl])).toThrow(expect.objectContaining({ code: 'EXPORTER_INVALID' }))
  })

  const sound: ExporterSpec<object> = {
    name: 'mine',
    version: '1.0.0',
    summary: '',
    needs: 'tokens',
    purpose: 'rl',
    trainer: noNeeds,
    files: ['rows.bin'],
    options: z.strictObject({ level: z.int().optional() }),
    write: () => Promise.resolve(),
  }
  it.each([
    ['name', { name: 'Mine!' }],
    ['version', { version: '1' }],
    ['needs', { needs: 'pixels' as 'tokens' }],
    ['purpose', { purpose: 'fun' as 'rl' }],
    ['tokens', { needs: 'messages' as const }],
    ['files', { files: [] }],
    ['plain name', { files: ['../rows.bin'] }],
    ['twice', { files: ['a', 'a'] }],
    ['manifest.json', { files: ['manifest.json'] }],
    ['trainer.equalGroups', { trainer: { ...noNeeds, equalGroups: undefined as never } }],
    ['accept', { accept: () => null }],
    ['write', { write: undefined as never }],
    ['options', { options: {} as never }],
  ])('refuses a plugin whose %s is wrong, and says so', (word, change) => {
    expect(() => defineExporter({ ...sound, ...change })).toThrow(
      expect.objectContaining({ code: 'EXPORTER_INVALID', message: expect.stringContaining(word) }),
    )
  })

  it('names the option that is wrong', () => {
    expect(() => defineExporter(sound).prepare({ level: 'high' })).toThrow(
      expect.objectContaining({ code: 'USAGE', message: expect.stringContaining('level') }),
    )
  })

  it.each([
    [sound.options, 'Its options: level (integer).'],
    [
      z.strictObject({
        sep: z.enum([',', ';']),
        header: z.boolean().default(true),
        of: z.union([z.int(), z.string()]),
      }),
      'Its options: sep (, | ;), header (boolean), of.',
    ],
    [z.strictObject({}), 'It has no options.'],
  ])('lists the options of its own schema beside one that it does not have', (options, fix) => {
    expect(() => defineExporter({ ...sound, options }).prepare({ sap: ';' })).toThrow(
      expect.objectContaining({ code: 'USAGE', fix }),
    )
  })
})
