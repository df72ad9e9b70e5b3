import { z } from 'zod'
import { knownShape, selectionShape } from '../side-server/index.ts'

/** A file of tasks: which rows of which of the environment's data sets. */
export const selectionSchema = z.strictObject({
  dataset: z.enum(['train', 'eval']).default('train'),
  ...selectionShape,
  /** Of the tasks; left out: `train` of the one data set, `test` of the other. */
  split: z.string().optional(),
})

/** What the agent is shown of a row's prompt. */
export const shownSchema = z.object({ system: z.string().nullable(), user: z.string().min(1) })

const offeredSchema = z.object({
  name: z.string(),
  description: z.string(),
  inputSchema: z.looseObject({ type: z.literal('object') }),
})
export type Offered = z.infer<typeof offeredSchema>

/** A row as the sidecar tells it. */
export const rowSchema = shownSchema.extend({
  at: z.int(),
  /** The row itself, which an attempt is begun with. */
  row: z.record(z.string(), z.unknown()),
  tools: z.array(offeredSchema),
  /** True where the environment answers words, so that the agent needs a way to say some before its last. */
  speaks: z.boolean(),
})

/** `Task.data`. */
export const verifiersDataSchema = rowSchema.extend(knownShape)
export type VerifiersData = z.infer<typeof verifiersDataSchema>
