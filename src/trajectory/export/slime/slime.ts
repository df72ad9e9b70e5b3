import { z } from 'zod'
import type { ExportRollout, Row } from '../../rows-contract.ts'
import { defineExporter, type Exporter } from '../contract.ts'
import { float32Json, intJson, jsonLine } from '../json-line.ts'
import { mediaJson } from '../media.ts'
import { noNeeds } from '../needs.ts'
import { rowAdvantage } from '../row-advantage.ts'

/**
 * slime's `Sample` as one JSON object per line: `samples.jsonl`, to be read with `Sample.from_dict`
 * (THUDM/slime slime/utils/types.py: fields, `from_dict`; members that are no field become attributes).
 * `tokens` is prompt and response, `loss_mask` and `rollout_log_probs` cover the response only, 0.0 where not trained.
 * Documented, not run.
 */
export const slimeExporter: Exporter = defineExporter({
  name: 'slime',
  version: '1.0.0',
  summary: 'slime samples as JSON lines for Sample.from_dict.',
  needs: 'tokens',
  purpose: 'rl',
  // `_post_process_rewards` (slime/ray/rollout.py:608-631 at 624b824) reshapes rewards by n_samples_per_prompt, and takes
  // the whole batch for one group where the count differs.
  trainer: { ...noNeeds, equalGroups: true, oneRowPerRollout: true },
  files: ['samples.jsonl'],
  options: z.strictObject({}),
  async write(rollouts, sink) {
    const file = await sink.open('samples.jsonl')
    const groups = new Map<string, number>()
    let index = 0
    for await (const rollout of rollouts) {
      const groupIndex = groups.get(rollout.group.id) ?? groups.size
      groups.set(rollout.group.id, groupIndex)
      for (const [at, row] of rollout.rows.entries()) {
        await file.write(line(rollout, row, { at, index, groupIndex }))
        index += 1
      }
    }
  },
})

function line(
  exported: ExportRollout,
  row: Row,
  place: { readonly at: number; readonly index: number; readonly groupIndex: number },
): string {
  const { rollout, verdict } = exported
  const response = { from: row.promptLength, length: row.tokens.length - row.promptLength }
  return jsonLine({
    group_index: place.groupIndex,
    index: place.index,
    rollout_id: rollout.id,
    prompt: exported.instruction,
    tokens: intJson(row.tokens),
    response_length: response.length,
    loss_mask: intJson(row.mask.subarray(response.from)),
    rollout_log_probs: float32Json(row.logprobs.subarray(response.from)),
    reward: verdict?.reward ?? null,
    weight_versions: versionsOf(row),
    status: row.finishReason === 'length' ? 'truncated' : 'completed',
    session_id: row.sessionId,
    metadata: {
      row_id: row.id,
      group_id: exported.group.id,
      task: exported.taskName,
      environment: exported.environment,
      harness: rollout.harness,
      end: rollout.end,
      components: verdict?.components ?? {},
      row_weight: exported.rowWeights[place.at] ?? 1,
      rows_of_rollout: exported.rows.length,
      advantage: rowAdvantage(exported, place.at),
      logprob_kind: row.logprobKind,
      media: mediaJson(exported, place.at),
    },
  })
}

/** One per sampled run, as slime appends one per engine call; runs without a version are left out. */
function versionsOf(row: Row): readonly string[] {
  return row.policySpans.flatMap(({ policy }) => (policy.weightVersion === null ? [] : [policy.weightVersion]))
}
