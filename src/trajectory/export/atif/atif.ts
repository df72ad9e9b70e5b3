import { z } from 'zod'
import type { ExportRollout, Row, RowSegment } from '../../rows-contract.ts'
import { isAnswer, isImported, isMain, isWithoutTraining, roleOf } from '../conversation.ts'
import { defineExporter, type Exporter } from '../contract.ts'
import { float32Json, intJson, jsonLine, rawJson, RawJson } from '../json-line.ts'
import { noNeeds } from '../needs.ts'
import { type Said, stepsOf } from './steps.ts'

const optionsSchema = z.strictObject({
  /** Whether each answer has the ids of its whole prompt: they grow with the square of the turns. */
  promptIds: z.boolean().default(false),
})

/**
 * The Agent Trajectory Interchange Format, ATIF-v1.8: `trajectories.jsonl`, one trajectory per row (Python package `atif` 1.8.0,
 * `atif/trajectory.py` and `atif/step.py`). An answer has the ids that the engine sampled, and its logprobs where it trains here. Answers
 * that this row does not train are `is_copied_context`, which readers leave out of fine-tuning. The format has no word for a reward:
 * it stands in `extra`.
 */
export const atifExporter: Exporter = defineExporter({
  name: 'atif',
  version: '1.0.0',
  summary: 'ATIF-v1.8 trajectories with the sampled ids, as JSON lines.',
  needs: 'messages',
  purpose: 'archive',
  trainer: noNeeds,
  files: ['trajectories.jsonl'],
  options: optionsSchema,
  async write(rollouts, sink, { promptIds }) {
    const file = await sink.open('trajectories.jsonl')
    for await (const exported of rollouts) {
      for (const [index, row] of exported.rows.entries()) await file.write(line(exported, row, index, promptIds))
    }
  },
})

function line(exported: ExportRollout, row: Row, index: number, promptIds: boolean): string {
  const { rollout, group, verdict } = exported
  const { messages = [], tools = null } = exported.conversations[index] ?? {}
  const said = row.segments.filter(isAnswer)
  const steps = stepsOf(
    messages,
    isImported(row)
      ? {
          answers: messages
            .filter((text) => roleOf(text) === 'assistant')
            .map((text) => ({ isCopied: isWithoutTraining(text), metrics: undefined })),
          modelOf: () => rollout.labels.model ?? null,
        }
      : {
          answers: said.map((segment) => saidIn(row, segment, promptIds)),
          modelOf: (nth) => row.policySpans.find(({ start }) => start === said[nth]?.start)?.policy.model ?? null,
        },
  )
  const sampled = said.reduce((sum, { start, end }) => sum + end - start, 0)
  // What came in under ids goes out under them.
  const kept = isImported(row) && isMain(row) ? rollout.labels : {}
  return jsonLine({
    schema_version: 'ATIF-v1.8',
    session_id: kept.session_id ?? row.sessionId,
    trajectory_id: kept.trajectory_id ?? row.id,
    agent: object({
      name: (isImported(row) ? rollout.labels.agent : undefined) ?? rollout.harness,
      // What a harness calls its version is not recorded by all of them.
      version: (isImported(row) ? rollout.labels.agent_version : undefined) ?? 'unknown',
      tool_definitions: tools === null ? undefined : rawJson(tools),
    }),
    steps: new RawJson(`[${steps.map((step) => object(step).json).join(',')}]`),
    final_metrics: { total_completion_tokens: sampled, total_steps: steps.length },
    extra: {
      rollout_id: rollout.id,
      group_id: group.id,
      task: exported.taskName,
      environment: exported.environment,
      call_class: said.at(-1)?.callClass ?? null,
      end: rollout.end,
      taints: rollout.taints,
      reward: verdict?.reward ?? null,
      status: verdict?.status ?? null,
      logprob_kind: row.logprobKind,
    },
  })
}

function saidIn(row: Row, { start, end, trained, origin }: RowSegment, promptIds: boolean): Said {
  const trains = trained && row.mask.subarray(start, end).every((bit) => bit === 1)
  const logprobs = row.logprobs.subarray(start, end)
  return {
    isCopied: origin !== 'sampled' || !trained,
    metrics: object({
      prompt_tokens: start,
      completion_tokens: end - start,
      prompt_token_ids: promptIds ? intJson(row.tokens.subarray(0, start)) : undefined,
      completion_token_ids: intJson(row.tokens.subarray(start, end)),
      // Zeros of what does not train are no logprobs.
      logprobs: trains && logprobs.every(Number.isFinite) ? float32Json(logprobs) : undefined,
    }),
  }
}

function object(members: Readonly<Record<string, unknown>>): RawJson {
  return new RawJson(jsonLine(members).trimEnd())
}
