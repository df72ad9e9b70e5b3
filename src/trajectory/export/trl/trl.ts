import { z } from 'zod'
import { defineExporter, type Exporter } from '../contract.ts'
import { float32Json, intJson, jsonLine } from '../json-line.ts'
import { mediaJson } from '../media.ts'
import { noNeeds } from '../needs.ts'
import { rowAdvantage } from '../row-advantage.ts'

/**
 * Rows for a TRL `rollout_func`: `rollouts.jsonl`. Put the members of the lines into lists by name and return that
 * dict: `prompt_ids`, `completion_ids`, `logprobs` and `env_mask` (1 = model) are TRL's
 * (huggingface/trl trl/trainer/grpo_trainer.py, `rollout_func`, 2026-07-24); further members reach the reward
 * functions, of which one returns `reward`. TRL takes the order of rows as groups, so rows of a group follow one
 * another. Documented, not run.
 */
export const trlExporter: Exporter = defineExporter({
  name: 'trl',
  version: '1.0.0',
  summary: 'Rows for a TRL rollout_func as JSON lines.',
  needs: 'tokens',
  purpose: 'rl',
  // `rewards.view(-1, num_generations)` (trl/trainer/grpo_trainer.py:2685 at f2cd577); one entry per prompt copy.
  trainer: { ...noNeeds, equalGroups: true, oneRowPerRollout: true },
  files: ['rollouts.jsonl'],
  options: z.strictObject({}),
  async write(rollouts, sink) {
    const file = await sink.open('rollouts.jsonl')
    for await (const exported of rollouts) {
      for (const [index, row] of exported.rows.entries()) {
        const { promptLength: cut } = row
        await file.write(
          jsonLine({
            prompt_ids: intJson(row.tokens.subarray(0, cut)),
            completion_ids: intJson(row.tokens.subarray(cut)),
            logprobs: float32Json(row.logprobs.subarray(cut)),
            env_mask: intJson(row.mask.subarray(cut)),
            reward: exported.verdict?.reward ?? null,
            reward_components: exported.verdict?.components ?? {},
            row_weight: exported.rowWeights[index] ?? 1,
            advantage: rowAdvantage(exported, index),
            row_id: row.id,
            rollout_id: exported.rollout.id,
            group_id: exported.group.id,
            logprob_kind: row.logprobKind,
            media: mediaJson(exported, index),
          }),
        )
      }
    }
  },
})
