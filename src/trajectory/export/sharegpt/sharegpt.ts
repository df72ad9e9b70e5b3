import { z } from 'zod'
import { defineExporter, type Exporter } from '../contract.ts'
import { isMain, untrainedIn } from '../conversation.ts'
import { jsonLine } from '../json-line.ts'
import { noNeeds } from '../needs.ts'
import { turnsOf } from './turns.ts'

const optionsSchema = z.strictObject({
  /** Rows of rollouts with a smaller reward are left out. */
  minReward: z.number().optional(),
  /** False: also what LLaMA-Factory does not take: text beside a call, several calls in one answer, another order. */
  strict: z.boolean().default(true),
  /** Conversations with an answer that must not train: `leave-out` names them in `left_out.jsonl`, `keep` writes them like others. */
  untrained: z.enum(['leave-out', 'keep']).default('leave-out'),
})

/**
 * ShareGPT: `conversations.jsonl`, lines of `{conversations: [{from, value}], system, tools}` with the words of LLaMA-Factory's
 * `data/README.md` (v0.9: human, gpt, function_call, observation; `tools` is text). It has no word for thinking, ids of calls or
 * weights: they are not written, and a conversation in which an answer must not train is left out. Conversations that it cannot say are named in `left_out.jsonl`. Documented, not run.
 */
export const sharegptExporter: Exporter = defineExporter({
  name: 'sharegpt',
  version: '1.0.0',
  summary: 'ShareGPT conversations as JSON lines for supervised fine-tuning.',
  needs: 'messages',
  purpose: 'sft',
  trainer: noNeeds,
  files: ['conversations.jsonl', 'left_out.jsonl'],
  options: optionsSchema,
  accept(exported, row, { minReward }) {
    const reward = exported.verdict?.reward ?? null
    if (minReward !== undefined && (reward === null || reward < minReward)) return 'filtered'
    return isMain(row) ? null : 'class'
  },
  async write(rollouts, sink, { strict, untrained }) {
    const [file, leftOut] = [await sink.open('conversations.jsonl'), await sink.open('left_out.jsonl')]
    for await (const exported of rollouts) {
      for (const [index, row] of exported.rows.entries()) {
        const { messages, tools } = exported.conversations[index] ?? { messages: [], tools: null }
        const trainsAll = untrained === 'keep' || untrainedIn(messages, row).size === 0
        const said = trainsAll ? turnsOf(messages, strict) : 'untrained'
        if (typeof said === 'string') {
          await leftOut.write(jsonLine({ row_id: row.id, task: exported.taskName, reason: said }))
          continue
        }
        const reward = exported.verdict?.reward ?? undefined
        const about = { tools: tools ?? undefined, row_id: row.id, task: exported.taskName, reward }
        await file.write(jsonLine({ conversations: said.conversations, system: said.system || undefined, ...about }))
      }
    }
  },
})
