import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import type { ImportFormat } from './contract.ts'
import { keptFromTraining } from './may-train.ts'
import { parsed } from './parsed.ts'
import { RawObject } from './raw.ts'

const schema = z.looseObject({
  messages: z.array(z.looseObject({ role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']) })).min(1),
  tools: z.array(z.unknown()).nullish(),
  task: z.string().nullish(),
  instruction: z.string().nullish(),
  reward: z.number().nullish(),
  model: z.string().nullish(),
  labels: z.record(z.string(), z.string()).nullish(),
  values: z.array(z.number().nullable()).nullish(),
})

/**
 * Chat messages, as OpenAI's guide to fine-tuning and the export `openai` have them: `{messages, tools?}`. `task`, `instruction`,
 * `reward`, `model`, `labels` and `values` (of the answers, in order) may stand beside.
 */
export const chatFormat: ImportFormat = {
  name: 'chat',
  mark: 'messages',
  summary: 'lines of {messages, tools?, task?, instruction?, reward?, model?, labels?, values?}',
  read(text, place) {
    const value = parsed(schema, text, place)
    const raw = new RawObject(text)
    const answers = value.messages.flatMap((members, at) =>
      members.role === 'assistant' ? [{ members, place: `${place}: messages[${at}]` }] : [],
    )
    const messages = keptFromTraining(raw.elements('messages'), answers, { members: value, place })
    const values = value.values ?? null
    if (values !== null && (values.length !== answers.length || typeof value.reward !== 'number')) {
      throw new PaddockError(
        'IMPORT_INVALID',
        `${place}: values are one for each of ${answers.length} answers, beside a reward`,
      )
    }
    return {
      place,
      task: { name: value.task ?? null, instruction: value.instruction ?? null },
      reward: value.reward ?? null,
      model: value.model ?? null,
      labels: value.labels ?? {},
      threads: [{ messages, tools: raw.raw('tools'), of: 'main', ...(values === null ? {} : { values }) }],
    }
  },
}
