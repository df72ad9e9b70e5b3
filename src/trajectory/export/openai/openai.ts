import { z } from 'zod'
import { defineExporter, type Exporter } from '../contract.ts'
import { imitates, isAnswer, roleOf, untrainedIn, withoutTraining } from '../conversation.ts'
import { jsonLine, rawJson, rawJsonArray } from '../json-line.ts'
import { noNeeds } from '../needs.ts'

const optionsSchema = z.strictObject({
  /** Rows of rollouts with a smaller reward are left out. */
  minReward: z.number().optional(),
  /**
   * What becomes of assistant messages that this row does not train (trained in a sibling row, or not sampled here):
   * `weight` marks them `"weight": 0`, `keep` leaves them as they are.
   */
  untrained: z.enum(['weight', 'keep']).default('weight'),
  /** A regular expression. Answers with a tool call whose result it finds something in are marked `"weight": 0`: they failed. */
  failed: z
    .string()
    .refine(isPattern, 'is no regular expression')
    .transform((text) => new RegExp(text, 'u'))
    .optional(),
})

/**
 * Conversations for supervised fine-tuning: `messages.jsonl`, lines of `{messages, tools}` in the shape of the chat
 * completions request (OpenAI fine-tuning guide, chat format; `weight` 0 or 1 on assistant messages is theirs too).
 * Messages are the JSON texts of the wire, so argument strings are as the model wrote them. Only rows of the main
 * conversation that train something.
 */
export const openaiExporter: Exporter = defineExporter({
  name: 'openai',
  version: '1.0.0',
  summary: 'Chat conversations as JSON lines for supervised fine-tuning.',
  needs: 'messages',
  purpose: 'sft',
  trainer: noNeeds,
  files: ['messages.jsonl'],
  options: optionsSchema,
  accept(exported, row, options) {
    const reward = exported.verdict?.reward ?? null
    if (options.minReward !== undefined && (reward === null || reward < options.minReward)) return 'filtered'
    const leaf = row.segments.findLast(isAnswer)
    return leaf?.callClass === 'main' && imitates(leaf) ? null : 'class'
  },
  async write(rollouts, sink, options) {
    const file = await sink.open('messages.jsonl')
    for await (const rollout of rollouts) {
      for (const [index, row] of rollout.rows.entries()) {
        const conversation = rollout.conversations[index]
        if (conversation === undefined) continue
        const untrained = options.untrained === 'keep' ? new Set<number>() : untrainedIn(conversation.messages, row)
        for (const at of options.failed === undefined ? [] : failedIn(conversation.messages, options.failed))
          untrained.add(at)
        const messages = conversation.messages.map((text, at) => (untrained.has(at) ? withoutTraining(text) : text))
        await file.write(
          jsonLine({
            messages: rawJsonArray(messages),
            tools: conversation.tools === null ? undefined : rawJson(conversation.tools),
          }),
        )
      }
    }
  },
})

const called = z.looseObject({ tool_calls: z.array(z.looseObject({ id: z.string() })).nullish() })
const result = z.looseObject({ tool_call_id: z.string().nullish(), content: z.unknown() })

/** Places of the answers that called a tool whose result says that it failed. */
function failedIn(messages: readonly string[], pattern: RegExp): readonly number[] {
  const failed: number[] = []
  const callers = new Map<string, number>()
  for (const [index, text] of messages.entries()) {
    const role = roleOf(text)
    if (role === 'assistant') {
      for (const { id } of called.parse(JSON.parse(text)).tool_calls ?? []) callers.set(id, index)
    }
    if (role !== 'tool') continue
    const { tool_call_id: id, content } = result.parse(JSON.parse(text))
    const caller = callers.get(id ?? '')
    if (caller === undefined) continue
    if (pattern.test(typeof content === 'string' ? content : JSON.stringify(content))) failed.push(caller)
  }
  return failed
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u') instanceof RegExp
  } catch {
    return false
  }
}
