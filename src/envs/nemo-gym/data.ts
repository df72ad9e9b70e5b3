import { z } from 'zod'
import { knownShape, selectionShape } from '../side-server/index.ts'

/** A file of tasks: which rows of which file of the server's. */
export const selectionSchema = z.strictObject({
  /** A file of rows (JSON lines), beside the server's program unless the path is absolute. */
  rows: z.string().min(1),
  ...selectionShape,
  split: z.string().default('train'),
})

const offeredSchema = z.object({
  name: z.string(),
  description: z.string(),
  inputSchema: z.looseObject({ type: z.literal('object') }),
})
export type Offered = z.infer<typeof offeredSchema>

/** `Task.data`. */
export const nemoGymDataSchema = z.object({
  at: z.int(),
  /** The row itself, which a session is seeded with and an attempt verified. */
  row: z.record(z.string(), z.unknown()),
  system: z.string().nullable(),
  user: z.string().min(1),
  tools: z.array(offeredSchema),
  ...knownShape,
})
export type NemoGymData = z.infer<typeof nemoGymDataSchema>

// nemo-gym 0.7.0, nemo_gym/openai_utils.py: NeMoGymResponseCreateParamsNonStreaming.
const text = z.union([z.string(), z.array(z.object({ type: z.literal('input_text'), text: z.string() }))])
const message = z.object({ role: z.enum(['system', 'developer', 'user']), content: text })
const tool = z.object({
  type: z.literal('function'),
  name: z.string(),
  description: z.string().nullish(),
  parameters: z.looseObject({ type: z.literal('object') }).nullish(),
})
const rowShape = z.looseObject({
  responses_create_params: z.looseObject({
    input: z.union([z.string(), z.array(message)]),
    instructions: z.string().nullish(),
    tools: z.array(tool).default([]),
  }),
})

/** What of a row an agent of its own is shown. Throws why it cannot be shown one. */
export function shown(row: unknown): Omit<NemoGymData, 'at' | 'oracle' | 'cheats'> {
  const read = rowShape.safeParse(row)
  if (!read.success) throw new Error(z.prettifyError(read.error))
  const { input, instructions, tools } = read.data.responses_create_params
  const messages = typeof input === 'string' ? [{ role: 'user' as const, content: input }] : input
  const said = messages.map(({ content }) =>
    typeof content === 'string' ? content : content.map((part) => part.text).join(''),
  )
  const roles = messages.map(({ role }) => (role === 'developer' ? 'system' : role)).join(', ')
  const system = roles === 'system, user' ? (said[0] ?? null) : null
  const user = said.at(-1) ?? ''
  if ((roles !== 'user' && roles !== 'system, user') || user === '') {
    throw new Error(`its input is a conversation (${roles}), and an agent begins its own`)
  }
  if (instructions != null && system !== null) throw new Error('it has both instructions and a message of the system')
  return {
    // As it stands in the file: what is left out of a shape here is looked at there.
    row: row as Record<string, unknown>,
    system: instructions ?? system,
    user,
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      description: description == null || description === '' ? name : description,
      inputSchema: parameters ?? { type: 'object' },
    })),
  }
}
