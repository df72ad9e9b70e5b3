import { z } from 'zod'
import { defineExporter, type Exporter } from '../contract.ts'
import { float32Json, intJson, jsonLine } from '../json-line.ts'
import { mediaJson } from '../media.ts'
import { noNeeds } from '../needs.ts'
import { rowAdvantage } from '../row-advantage.ts'

/**
 * Rows of a SkyRL `GeneratorOutput` (NovaSky-AI/SkyRL skyrl/train/generators/base.py:37-63 at commit a956457,
 * 2026-08-21): `generator_output.jsonl`. Put the members of the lines into lists by name, make a `TrajectoryID` of each
 * member of `trajectory_ids`, and return that dict from `generate`. Groups are found by `instance_id`
 * (skyrl/train/trainer.py:369). Rows of one rollout follow one another and the last has `is_last_step`, as
 * `_validate_step_wise_fields` asks (skyrl/train/utils/trainer_utils.py:754-826): with several rows for one rollout, or
 * groups of several sizes, train with `generator.step_wise_trajectories=true`. Documented, not run.
 */
export const skyrlExporter: Exporter = defineExporter({
  name: 'skyrl',
  version: '1.0.0',
  summary: 'Rows of a SkyRL GeneratorOutput as JSON lines.',
  needs: 'tokens',
  purpose: 'rl',
  trainer: noNeeds,
  files: ['generator_output.jsonl'],
  options: z.strictObject({}),
  async write(rollouts, sink) {
    const file = await sink.open('generator_output.jsonl')
    let group = ''
    let repetition = 0
    for await (const exported of rollouts) {
      repetition = exported.group.id === group ? repetition + 1 : 0
      group = exported.group.id
      for (const [index, row] of exported.rows.entries()) {
        const { promptLength: cut } = row
        await file.write(
          jsonLine({
            prompt_token_ids: intJson(row.tokens.subarray(0, cut)),
            response_ids: intJson(row.tokens.subarray(cut)),
            loss_masks: intJson(row.mask.subarray(cut)),
            rollout_logprobs: float32Json(row.logprobs.subarray(cut)),
            rewards: exported.verdict?.reward ?? null,
            stop_reasons: row.finishReason,
            trajectory_ids: { instance_id: group, repetition_id: repetition },
            is_last_step: index === exported.rows.length - 1,
            advantage: rowAdvantage(exported, index),
            reward_components: exported.verdict?.components ?? {},
            row_weight: exported.rowWeights[index] ?? 1,
            row_id: row.id,
            rollout_id: exported.rollout.id,
            logprob_kind: row.logprobKind,
            media: mediaJson(exported, index),
          }),
        )
      }
    }
  },
})
