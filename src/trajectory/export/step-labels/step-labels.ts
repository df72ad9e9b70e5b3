import { z } from 'zod'
import type { ExportRollout, Row } from '../../rows-contract.ts'
import { defineExporter, type Exporter } from '../contract.ts'
import { isAnswer, roleOf } from '../conversation.ts'
import { jsonLine, RawJson, rawJson, rawJsonArray } from '../json-line.ts'
import { noNeeds } from '../needs.ts'

const optionsSchema = z.strictObject({
  /** Given: each step with a value has `label`, true from this value on. */
  threshold: z.number().optional(),
})

/**
 * Values of single steps, for process reward models and critics: `steps.jsonl`, a line per row that has at least one, of
 * `{prompt, steps: [{messages, value, label?}], reward}`. A step is an answer with what came of it. `value` is what the verdict in force
 * says of its call, null where it says nothing.
 */
export const stepLabelsExporter: Exporter = defineExporter({
  name: 'step-labels',
  version: '1.0.0',
  summary: 'Values of single answers as JSON lines, for process rewards.',
  needs: 'messages',
  purpose: 'sft',
  trainer: noNeeds,
  files: ['steps.jsonl'],
  options: optionsSchema,
  accept: (exported, row) => (valuesOf(exported, row).some((value) => value !== null) ? null : 'class'),
  async write(rollouts, sink, { threshold }) {
    const file = await sink.open('steps.jsonl')
    for await (const exported of rollouts) {
      for (const [index, row] of exported.rows.entries()) {
        const { messages, tools } = exported.conversations[index] ?? { messages: [], tools: null }
        await file.write(line(exported, { row, messages, tools, threshold }))
      }
    }
  },
})

function line(
  exported: ExportRollout,
  {
    row,
    messages,
    tools,
    threshold,
  }: {
    readonly row: Row
    readonly messages: readonly string[]
    readonly tools: string | null
    readonly threshold: number | undefined
  },
): string {
  const places = messages.flatMap((text, at) => (roleOf(text) === 'assistant' ? [at] : []))
  const values = valuesOf(exported, row)
  // After a fork earlier answers are prompt text of this row, and the last ones are those that are known.
  const unknown = places.length - values.length
  const steps = places.map((at, nth) => {
    const value = values[nth - unknown] ?? null
    return jsonLine({
      messages: rawJsonArray(messages.slice(at, places[nth + 1] ?? messages.length)),
      value,
      label: threshold === undefined || value === null ? undefined : value >= threshold,
    }).trimEnd()
  })
  return jsonLine({
    prompt: rawJsonArray(messages.slice(0, places[0] ?? messages.length)),
    steps: new RawJson(`[${steps.join(',')}]`),
    tools: tools === null ? undefined : rawJson(tools),
    reward: exported.verdict?.reward ?? null,
    task: exported.taskName,
    rollout_id: exported.rollout.id,
    row_id: row.id,
  })
}

/** Of the answers of a row, in order. */
function valuesOf({ verdict }: ExportRollout, row: Row): readonly (number | null)[] {
  const values = new Map(verdict?.steps.map(({ callId, value }) => [callId, value]))
  return row.segments.filter(isAnswer).map(({ callId }) => (callId === null ? null : (values.get(callId) ?? null)))
}
