import { z } from 'zod'
import type { ExportRollout, Row } from '../../rows-contract.ts'
import { defineExporter, type Exporter } from '../contract.ts'
import { roleOf } from '../conversation.ts'
import { noNeeds } from '../needs.ts'
import { rowAdvantage } from '../row-advantage.ts'
import type { Cell, Column } from './parquet.ts'

/**
 * Columns by the names under which verl knows them (verl-project/verl 0.10.0.dev, commit 1dda039, 2026-08-22):
 * `prompt_ids`, `response_ids`, `response_mask`, `num_turns`: `AgentLoopOutput`,
 * verl/experimental/agent_loop/agent_loop.py:88-106; `rollout_log_probs`: :124 (there `response_logprobs` until it is
 * a tensor); `rm_score`: the number that :143-145 puts on the last response token as `rm_scores`; `uid`: the group
 * key of advantages, verl/trainer/ppo/ray_trainer.py:243; `session_id`: with uid and an index the key of a sample,
 * verl/trainer/ppo/v1/agent_loop_tq.py:154-182; `min_/max_global_steps`: :215-218; `data_source`, `extra_info`: the
 * dataset columns of docs/preparation/prepare_data.rst; `images`: the key of images there, here paths of files beside
 * this one.
 * verl reads such rows from memory; this Parquet holds them ragged and unpadded. Documented, not run.
 */
const columns: readonly Column[] = [
  { name: 'uid', type: 'string' },
  { name: 'rollout_id', type: 'string' },
  { name: 'session_id', type: 'string' },
  { name: 'row_id', type: 'string' },
  { name: 'data_source', type: 'string' },
  { name: 'prompt_ids', type: 'list<int32>' },
  { name: 'response_ids', type: 'list<int32>' },
  { name: 'response_mask', type: 'list<int32>' },
  { name: 'rollout_log_probs', type: 'list<float>' },
  { name: 'logprob_kind', type: 'string' },
  { name: 'rm_score', type: 'double' },
  { name: 'reward_components', type: 'json' },
  { name: 'row_weight', type: 'double' },
  { name: 'advantage', type: 'double', nullable: true },
  { name: 'num_turns', type: 'int32' },
  { name: 'min_global_steps', type: 'int64', nullable: true },
  { name: 'max_global_steps', type: 'int64', nullable: true },
  { name: 'weight_versions', type: 'list<string>' },
  { name: 'finish_reason', type: 'string', nullable: true },
  { name: 'images', type: 'list<string>' },
  { name: 'extra_info', type: 'json' },
]

/** verl's agent-loop rows as ragged Parquet: `rows.parquet`. */
export const verlExporter: Exporter = defineExporter({
  name: 'verl',
  version: '1.0.0',
  summary: 'verl agent-loop rows as ragged Parquet, one row per path.',
  needs: 'tokens',
  purpose: 'rl',
  // Groups by `uid` (verl/trainer/ppo/core_algos.py:268-331); rows of one rollout are rows of its group.
  trainer: noNeeds,
  files: ['rows.parquet'],
  options: z.strictObject({
    /** A row group is closed once it holds this many tokens. */
    rowGroupTokens: z.int().positive().default(1_000_000),
    /** Or this many rows. */
    rowGroupRows: z.int().positive().default(1_000),
  }),
  async write(rollouts, sink, options) {
    // Loaded when rows are written: every command knows the exporters by name.
    const { ParquetRows } = await import('./parquet.ts')
    const parquet = new ParquetRows(await sink.open('rows.parquet'), columns, 'paddock verl 1.0.0')
    let tokens = 0
    for await (const rollout of rollouts) {
      for (const [index, row] of rollout.rows.entries()) {
        parquet.add(cells(rollout, row, index))
        tokens += row.tokens.length
        if (tokens < options.rowGroupTokens && parquet.pending < options.rowGroupRows) continue
        await parquet.flush()
        tokens = 0
      }
    }
    await parquet.finish()
  },
})

function cells(exported: ExportRollout, row: Row, index: number): Readonly<Record<string, Cell>> {
  const { rollout, verdict } = exported
  const { promptLength: cut } = row
  const versions = weightVersions(row)
  const steps = versions.every((version) => /^\d{1,18}$/.test(version)) ? versions.map(BigInt) : []
  return {
    uid: exported.group.id,
    rollout_id: rollout.id,
    session_id: row.sessionId,
    row_id: row.id,
    data_source: exported.environment,
    prompt_ids: [...row.tokens.subarray(0, cut)],
    response_ids: [...row.tokens.subarray(cut)],
    response_mask: [...row.mask.subarray(cut)],
    rollout_log_probs: [...row.logprobs.subarray(cut)],
    logprob_kind: row.logprobKind,
    // The framework refuses null rewards in an `rl` export.
    rm_score: verdict?.reward ?? null,
    reward_components: JSON.stringify(verdict?.components ?? {}),
    row_weight: exported.rowWeights[index] ?? 1,
    advantage: rowAdvantage(exported, index),
    num_turns: turnsOf(exported, index),
    min_global_steps: steps.length === 0 ? null : steps.reduce((a, b) => (a < b ? a : b)),
    max_global_steps: steps.length === 0 ? null : steps.reduce((a, b) => (a > b ? a : b)),
    weight_versions: versions,
    finish_reason: row.finishReason,
    images: (exported.conversations[index]?.media ?? []).map(({ path }) => path),
    extra_info: JSON.stringify(extraInfo(exported, row, index)),
  }
}

/** Weight versions of the trained tokens, in order of first use; a span without one counts as none. */
function weightVersions(row: Row): readonly string[] {
  const versions = new Set<string>()
  for (const { policy } of row.policySpans) if (policy.weightVersion !== null) versions.add(policy.weightVersion)
  return [...versions]
}

/**
 * Messages of the conversation without system text: verl counts user, assistant and tool turns
 * (verl/experimental/agent_loop/tool_agent_loop.py:195).
 */
function turnsOf(exported: ExportRollout, index: number): number {
  const messages = exported.conversations[index]?.messages ?? []
  return messages.filter((text) => !['system', 'developer'].includes(roleOf(text))).length
}

function extraInfo(exported: ExportRollout, row: Row, index: number): object {
  const { rollout, verdict } = exported
  return {
    task: exported.taskName,
    task_digest: row.taskDigest,
    run_id: rollout.runId,
    harness: rollout.harness,
    slot: rollout.slot,
    attempt: rollout.attempt,
    end: rollout.end,
    row_index: index,
    rows_of_rollout: exported.rows.length,
    verdict:
      verdict === null
        ? null
        : { id: verdict.id, status: verdict.status, trust: verdict.trust, verifier: verdict.verifier },
    steps: (verdict?.steps ?? []).map((step) => ({ call_id: step.callId, value: step.value })),
    engine: row.fingerprint,
    mixing: [...new Set(row.policySpans.map((span) => span.mixing))],
    calls: row.segments
      .filter((segment) => segment.origin === 'sampled')
      .map((segment) => ({
        call_id: segment.callId,
        choice: segment.choice,
        class: segment.callClass,
        start: segment.start - row.promptLength,
        end: segment.end - row.promptLength,
        trained: segment.trained,
        mask_reason: segment.maskReason,
      })),
    sampling: row.sampling.map(({ callId, params }) => ({
      call_id: callId,
      temperature: params.temperature,
      top_p: params.topP,
      top_k: params.topK,
      min_p: params.minP,
      other: params.other,
    })),
  }
}
