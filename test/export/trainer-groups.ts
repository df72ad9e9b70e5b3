/**
 * How each trainer finds the groups of a file that it was given, read by itself: the file's own members only, and the
 * trainer's rule at the commit that is named. A format that is not here has no rule and fails its test.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'

/** A row as far as a trainer's grouping sees it. */
export interface TrainerRow {
  readonly rolloutId: string
  readonly reward: number
  readonly advantage: number
  /** The member by which a trainer that does not count finds the group. */
  readonly key: string
}

interface TrainerRule {
  readonly read: (directory: string) => Promise<readonly TrainerRow[]>
  /** `perGroup` is what the user told the trainer: rollouts per prompt. `groups`: prompts per step. */
  readonly group: (rows: readonly TrainerRow[], perGroup: number, groups: number) => readonly (readonly TrainerRow[])[]
}

type Line = Readonly<Record<string, unknown>>

async function lines(directory: string, file: string): Promise<readonly Line[]> {
  const text = await readFile(join(directory, file), 'utf8')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
}

const slices = <T>(rows: readonly T[], size: number, count: number): T[][] =>
  Array.from({ length: count }, (_, i) => rows.slice(i * size, (i + 1) * size))

const byKey = (rows: readonly TrainerRow[]): readonly (readonly TrainerRow[])[] => [
  ...Map.groupBy(rows, ({ key }) => key).values(),
]

/** By format. */
export const trainerRules: Readonly<Record<string, TrainerRule>> = {
  // huggingface/trl trl/trainer/grpo_trainer.py:2685 at f2cd577: `rewards.view(-1, num_generations)`, which throws where
  // the number of rows is no multiple.
  trl: {
    read: async (directory) =>
      (await lines(directory, 'rollouts.jsonl')).map((line) => ({
        rolloutId: String(line['rollout_id']),
        reward: Number(line['reward']),
        advantage: Number(line['advantage']),
        key: '',
      })),
    group: (rows, perGroup) => slices(rows, perGroup, Math.ceil(rows.length / perGroup)),
  },
  // THUDM/slime slime/ray/rollout.py:618-623 at 624b824: reshaped where the count is as planned, else one group of all.
  slime: {
    read: async (directory) =>
      (await lines(directory, 'samples.jsonl')).map((line) => ({
        rolloutId: String(line['rollout_id']),
        reward: Number(line['reward']),
        advantage: Number((line['metadata'] as Line)['advantage']),
        key: '',
      })),
    group: (rows, perGroup, groups) => (rows.length === perGroup * groups ? slices(rows, perGroup, groups) : [rows]),
  },
  // inclusionAI/AReaL areal/utils/data.py:1424-1425 at 4aef98d: slices of group_size; what is left over keeps its reward.
  areal: {
    read: async (directory) =>
      (await lines(directory, 'trajectories.jsonl')).map((line) => ({
        rolloutId: String(line['rollout_id']),
        reward: Number(line['rewards']),
        advantage: Number(line['advantage']),
        key: '',
      })),
    group: (rows, perGroup) => slices(rows, perGroup, Math.ceil(rows.length / perGroup)),
  },
  // verl-project/verl verl/trainer/ppo/core_algos.py:312-313 at 1dda039: a dictionary over `uid`.
  verl: {
    read: async (directory) => {
      const rows = await parquetReadObjects({ file: await asyncBufferFromFile(join(directory, 'rows.parquet')) })
      return rows.map((row) => ({
        rolloutId: String(row['rollout_id']),
        reward: Number(row['rm_score']),
        advantage: Number(row['advantage']),
        key: String(row['uid']),
      }))
    },
    group: byKey,
  },
  // NovaSky-AI/SkyRL skyrl/train/trainer.py:369 and 1159-1163 at a956457: by instance_id, over last steps only.
  skyrl: {
    read: async (directory) =>
      (await lines(directory, 'generator_output.jsonl'))
        .filter((line) => line['is_last_step'] === true)
        .map((line) => ({
          rolloutId: String(line['rollout_id']),
          reward: Number(line['rewards']),
          advantage: Number(line['advantage']),
          key: String((line['trajectory_ids'] as Line)['instance_id']),
        })),
    group: byKey,
  },
  // NVIDIA-NeMo/RL nemo_rl/algorithms/grpo.py:1893-1905 and utils.py:132-147 at 7ea279a: messages up to `length` tokens
  // are the prompt, and equal prompts are a group.
  'nemo-rl': {
    read: async (directory) =>
      (await lines(directory, 'rollouts.jsonl')).map((line) => {
        const prompt: number[] = []
        for (const message of line['message_log'] as readonly { readonly token_ids: readonly number[] }[]) {
          if (prompt.length >= Number(line['length'])) break
          prompt.push(...message.token_ids)
        }
        const info = line['extra_env_info'] as Line
        return {
          rolloutId: String(info['rollout_id']),
          reward: Number(line['total_reward']),
          advantage: Number(info['advantage']),
          key: prompt.join(),
        }
      }),
    group: byKey,
  },
}
