import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { Row } from '../../rows-contract.ts'
import { defineExporter, type Exporter } from '../contract.ts'
import { float32Json, intJson, jsonLine } from '../json-line.ts'
import { mediaJson } from '../media.ts'
import { noNeeds } from '../needs.ts'
import { rowAdvantage } from '../row-advantage.ts'

const optionsSchema = z.strictObject({
  /** Stands for a weight version that is no number. Without it such rows are refused. */
  unknownVersion: z.int().min(0).optional(),
})

/**
 * What an AReaL workflow returns for one rollout (inclusionAI/AReaL areal/workflow/rlvr.py:164-178, the same members in
 * areal/experimental/openai/types.py:143-206, at commit 4aef98d, 2026-05-21): `trajectories.jsonl`. Make a tensor with a
 * first dimension of 1 of `input_ids`, `loss_mask`, `logprobs`, `versions`, `attention_mask` and `rewards`.
 * `versions` has the weight version of each sampled token and -1 elsewhere. Documented, not run.
 */
export const arealExporter: Exporter = defineExporter({
  name: 'areal',
  version: '1.0.0',
  summary: 'AReaL trajectories as JSON lines, with the weight version of each token.',
  needs: 'tokens',
  purpose: 'rl',
  // `Normalization` cuts the batch into slices of `group_size` rows (areal/utils/data.py:1424-1425, 1468-1469).
  trainer: { ...noNeeds, equalGroups: true, oneRowPerRollout: true },
  files: ['trajectories.jsonl'],
  options: optionsSchema,
  async write(rollouts, sink, options) {
    const file = await sink.open('trajectories.jsonl')
    for await (const exported of rollouts) {
      for (const [index, row] of exported.rows.entries()) {
        await file.write(
          jsonLine({
            input_ids: intJson(row.tokens),
            loss_mask: intJson(row.mask),
            logprobs: float32Json(row.logprobs),
            versions: intJson(versionsOf(row, options.unknownVersion)),
            attention_mask: intJson(new Uint8Array(row.tokens.length).fill(1)),
            rewards: exported.verdict?.reward ?? null,
            advantage: rowAdvantage(exported, index),
            reward_components: exported.verdict?.components ?? {},
            row_weight: exported.rowWeights[index] ?? 1,
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

function versionsOf(row: Row, unknown: number | undefined): Int32Array {
  const versions = new Int32Array(row.tokens.length).fill(-1)
  for (const { start, end, policy } of row.policySpans) {
    const version = /^\d{1,9}$/.test(policy.weightVersion ?? '') ? Number(policy.weightVersion) : unknown
    if (version === undefined) {
      throw new PaddockError(
        'EXPORT_REFUSED',
        `Export as areal: row ${row.id} was sampled by weight version ${JSON.stringify(policy.weightVersion)}, which is no number`,
        { data: { row: row.id }, fix: 'Add `--option unknownVersion=<number>` to say which version stands for it.' },
      )
    }
    versions.fill(version, start, end)
  }
  return versions
}
