import { z } from 'zod'
import { problemsOf } from '../problems.ts'
import { withoutTraining } from '../export/conversation.ts'
import { invalid } from './invalid.ts'
import { isAnswer } from './raw.ts'

const known = {
  /** OpenAI's fine-tuning guide, chat format. */
  weight: z.union([z.literal(0), z.literal(1)], 'must be 0 (the answer must not train) or 1').nullish(),
  /** ms-swift, messages of a custom dataset. */
  loss: z.boolean().nullish(),
  /** axolotl, `message_field_training`. */
  train: z.boolean().nullish(),
  /** axolotl, `message_field_training_detail`. */
  train_detail: z.null('cannot be imported: split the answer, or give all of it "weight": 0').optional(),
}

/** Members that no format here knows, and that may mean "not this answer": a flag, or a name that speaks of training. */
function isUnclear(key: string, value: unknown): boolean {
  return typeof value === 'boolean' || /loss|mask|train|weight/i.test(key)
}

const answerMembers = z.looseObject(known).superRefine((members, context) => {
  for (const [key, value] of Object.entries(members)) {
    if (key in known || value === null || !isUnclear(key, value)) continue
    const message = 'may mean that the answer must not train: write "weight": 0 or 1 instead, or remove it'
    context.addIssue({ code: 'custom', path: [key], message })
  }
})

const conversationMembers = z.looseObject({
  weight: known.weight,
  /** LLaMA-Factory: only the last answer trains. */
  mask_history: z.boolean().nullish(),
})

/**
 * The messages of a conversation with `"weight": 0` in each answer that must not train, as every export reads it; every other byte stays.
 * `answers` are the members in which its file says so, by answer, with their place; `whole` those of the conversation. Throws
 * `IMPORT_INVALID` for what it does not understand.
 */
export function keptFromTraining(
  messages: readonly string[],
  answers: readonly { readonly members: object; readonly place: string }[],
  { members, place }: { readonly members: object; readonly place: string },
): readonly string[] {
  const whole = checked(conversationMembers, members, place)
  const trains = answers.map((one, nth) => {
    const { weight, loss, train } = checked(answerMembers, one.members, one.place)
    const isMasked = whole.mask_history === true && nth < answers.length - 1
    return weight !== 0 && loss !== false && train !== false && whole.weight !== 0 && !isMasked
  })
  let nth = 0
  return messages.map((message) => {
    if (!isAnswer(message)) return message
    nth += 1
    return trains[nth - 1] === true ? message : withoutTraining(message)
  })
}

function checked<Schema extends z.ZodType>(schema: Schema, value: object, place: string): z.infer<Schema> {
  const { success, data, error } = schema.safeParse(value)
  if (!success) throw invalid(place, problemsOf(error))
  return data
}
