import { z } from 'zod'
import type { Row } from '../../rows-contract.ts'
import { defineExporter, type Exporter } from '../contract.ts'
import { float32Json, intJson, jsonLine, rawJsonArray } from '../json-line.ts'
import { mediaJson } from '../media.ts'
import { rowAdvantage } from '../row-advantage.ts'

/**
 * Finished rollouts of NeMo-RL: `rollouts.jsonl`, one `DatumSpec` per line (NVIDIA-NeMo/RL nemo_rl/data/interfaces.py:34-42
 * at commit 7ea279a, 2026-08-22) with `total_reward` as rollouts end up (nemo_rl/experience/rollouts.py:1364). Make tensors of
 * `token_ids` and `generation_logprobs`. Messages are made as `NemoGym` makes them (nemo_rl/environments/nemo_gym.py:898-948):
 * what was sampled is `assistant`, all else `user`, contents empty. Only an `assistant` message with `generation_logprobs`
 * is trained (nemo_rl/algorithms/grpo.py:1910-1942). Documented, not run.
 */
export const nemoRlExporter: Exporter = defineExporter({
  name: 'nemo-rl',
  version: '1.0.0',
  summary: 'NeMo-RL message logs with token ids as JSON lines.',
  needs: 'tokens',
  purpose: 'rl',
  trainer: {
    // Nothing tells a second row of a rollout from another member: the baseline counts it as one.
    oneRowPerRollout: true,
    // "Non-contiguous messages found!" (nemo_gym.py:840-847).
    contiguousPrefix: true,
    // The loss mask of a message is all ones or all zeros (grpo.py:1934-1937).
    logprobOnEachToken: true,
    // `calculate_baseline_and_std_per_prompt` compares prompts (nemo_rl/algorithms/utils.py:104-198).
    groupsByPrompt: true,
    equalGroups: false,
  },
  files: ['rollouts.jsonl'],
  options: z.strictObject({}),
  async write(rollouts, sink) {
    const file = await sink.open('rollouts.jsonl')
    const groups = new Map<string, number>()
    for await (const exported of rollouts) {
      const idx = groups.get(exported.group.id) ?? groups.size
      groups.set(exported.group.id, idx)
      for (const [index, row] of exported.rows.entries()) {
        await file.write(
          jsonLine({
            message_log: rawJsonArray(messagesOf(row)),
            length: row.promptLength,
            loss_multiplier: 1,
            idx,
            task_name: exported.environment,
            total_reward: exported.verdict?.reward ?? null,
            truncated: row.finishReason === 'length',
            extra_env_info: {
              advantage: rowAdvantage(exported, index),
              reward_components: exported.verdict?.components ?? {},
              row_weight: exported.rowWeights[index] ?? 1,
              row_id: row.id,
              rollout_id: exported.rollout.id,
              group_id: exported.group.id,
              logprob_kind: row.logprobKind,
              media: mediaJson(exported, index),
            },
          }),
        )
      }
    }
  },
})

function messagesOf(row: Row): readonly string[] {
  return row.segments
    .filter(({ start, end }) => end > start)
    .map(({ origin, trained, start, end }) =>
      jsonLine({
        role: origin === 'sampled' ? 'assistant' : 'user',
        content: '',
        token_ids: intJson(row.tokens.subarray(start, end)),
        generation_logprobs: trained ? float32Json(row.logprobs.subarray(start, end)) : undefined,
      }).trimEnd(),
    )
}
