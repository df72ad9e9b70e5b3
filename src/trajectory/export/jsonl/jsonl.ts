import { z } from 'zod'
import { verdictOfPolicy } from '../../contract/index.ts'
import type { ExportRollout, Row } from '../../rows-contract.ts'
import { observationMask } from '../../rows/index.ts'
import { isUnfinished } from '../../select/index.ts'
import { defineExporter, type Exporter } from '../contract.ts'
import { mediaJson } from '../media.ts'
import { noNeeds } from '../needs.ts'
import { entropyJson, sideChannelJson } from '../side-channels.ts'
import { float32Json, intJson, jsonLine, rawJson, rawJsonArray } from '../json-line.ts'

/** Value of `schema` in each line. */
export const jsonlSchema = 'paddock.row/1'

/**
 * The native format: `rows.jsonl`, one line per row with everything that is known of it. It leaves nothing out for
 * being unusable; `usable` and `unusable_reasons` say what an RL trainer must leave out (invariant I7). `events.jsonl` has
 * the stored events of the exported rollouts, as `GET /rollouts/:id/events` gives them.
 * Fields: docs/reference/export-formats.md.
 */
export const jsonlExporter: Exporter = defineExporter({
  name: 'jsonl',
  version: '1.0.0',
  summary: 'Native: one JSON line per row with everything that is known of it.',
  needs: 'tokens',
  purpose: 'archive',
  trainer: noNeeds,
  files: ['rows.jsonl', 'events.jsonl'],
  options: z.strictObject({
    /** Leave the conversation out; tokens remain. */
    messages: z.boolean().default(true),
  }),
  async write(rollouts, sink, options) {
    const file = await sink.open('rows.jsonl')
    const events = await sink.open('events.jsonl')
    for await (const rollout of rollouts) {
      for (const [index, row] of rollout.rows.entries()) await file.write(line(rollout, row, index, options.messages))
      for (const event of rollout.events ?? []) await events.write(jsonLine({ ...event }))
    }
  },
})

function line(exported: ExportRollout, row: Row, index: number, withMessages: boolean): string {
  const { rollout, verdict } = exported
  const conversation = withMessages ? exported.conversations[index] : undefined
  const tools = conversation?.tools ?? null
  const reasons = [...unusable(exported), ...(row.offContext ? ['off_context'] : [])]
  return jsonLine({
    schema: jsonlSchema,
    row_id: row.id,
    run_id: rollout.runId,
    group_id: exported.group.id,
    rollout_id: rollout.id,
    session_id: row.sessionId,
    ...(row.policy === undefined ? {} : { policy: row.policy }),
    slot: rollout.slot,
    attempt: rollout.attempt,
    prompt_variant: exported.group.promptVariant,
    task: { digest: row.taskDigest, name: exported.taskName, environment: exported.environment },
    instruction: exported.instruction,
    harness: rollout.harness,
    started_at: rollout.startedAt,
    ended_at: rollout.endedAt,
    end: rollout.end,
    end_detail: rollout.endDetail,
    taints: rollout.taints,
    labels: rollout.labels,
    usable: reasons.length === 0,
    unusable_reasons: reasons,
    reward: verdictOfPolicy(verdict, row.policy ?? null)?.reward ?? null,
    verdict: verdict === null ? null : verdictJson(verdict),
    row_index: index,
    rows_of_rollout: exported.rows.length,
    row_weight: exported.rowWeights[index] ?? 1,
    prompt_length: row.promptLength,
    token_ids: intJson(row.tokens),
    loss_mask: intJson(row.mask),
    logprobs: float32Json(row.logprobs),
    logprob_kind: row.logprobKind,
    off_context: row.offContext,
    injected: row.injected,
    segments: row.segments.map((segment) => ({
      segment_id: segment.segmentId,
      origin: segment.origin,
      call_id: segment.callId,
      call_class: segment.callClass,
      choice: segment.choice,
      start: segment.start,
      end: segment.end,
      trained: segment.trained,
      mask_reason: segment.maskReason,
    })),
    policy_spans: row.policySpans.map((span) => ({
      start: span.start,
      end: span.end,
      model: span.policy.model,
      adapter: span.policy.adapter,
      weight_version: span.policy.weightVersion,
      mixing: span.mixing,
    })),
    sampling: row.sampling.map(({ callId, params }) => ({
      call_id: callId,
      temperature: params.temperature,
      top_p: params.topP,
      top_k: params.topK,
      min_p: params.minP,
      presence_penalty: params.presencePenalty,
      frequency_penalty: params.frequencyPenalty,
      repetition_penalty: params.repetitionPenalty,
      max_tokens: params.maxTokens,
      seed: params.seed,
      stop: params.stop,
      n: params.n,
      other: params.other,
    })),
    finish_reason: row.finishReason,
    engine: row.fingerprint,
    messages: conversation === undefined ? undefined : rawJsonArray(conversation.messages),
    tools: tools === null ? undefined : rawJson(tools),
    media: mediaJson(exported, index),
    ...spansJson(row, exported.spans?.[index]),
    entropies: entropyJson(exported, index),
    side_channels: sideChannelJson(exported, index),
  })
}

function spansJson(row: Row, spans: NonNullable<ExportRollout['spans']>[number] | undefined): object {
  if (spans === undefined) return {}
  return {
    message_spans: spans.map(({ toolCallId, ...span }) => ({ ...span, tool_call_id: toolCallId })),
    observation_mask: intJson(observationMask(row.tokens.length, spans)),
  }
}

function verdictJson(verdict: NonNullable<ExportRollout['verdict']>): object {
  return {
    id: verdict.id,
    status: verdict.status,
    reason: verdict.reward === null ? verdict.reason : null,
    at: verdict.at,
    ...(verdict.reward === null || verdict.byPolicy === undefined ? {} : { by_policy: verdict.byPolicy }),
    components: verdict.components,
    steps: verdict.steps.map((step) => ({ call_id: step.callId, value: step.value })),
    verifier: verdict.verifier,
    trust: verdict.trust,
    by: verdict.by,
    cost_tokens: verdict.costTokens,
    judge_sessions: verdict.judgeSessions ?? [],
    supersedes: verdict.supersedes,
    artifacts: verdict.artifacts.map((artifact) => ({
      path: artifact.path,
      sha256: artifact.sha256,
      size_bytes: artifact.sizeBytes,
      step: artifact.step,
    })),
    evidence: verdict.evidence,
  }
}

function unusable({ rollout, verdict }: ExportRollout): readonly string[] {
  const reasons: string[] = []
  if (verdict === null || verdict.reward === null) reasons.push('verdict_null')
  if (rollout.taints.length > 0) reasons.push('tainted')
  if (isUnfinished(rollout)) reasons.push('rollout_unfinished')
  return reasons
}
