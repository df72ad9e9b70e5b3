import { z } from 'zod'

/** Texts that the policy of a group's members sees and their harnesses do not: `Injection`. */
export const injections = z
  .array(
    z.strictObject({
      at: z.union([z.enum(['system', 'task']), z.strictObject({ turn: z.int().min(1) })]),
      text: z.string().min(1),
      label: z.string().min(1).max(100),
      keep: z.enum(['always', 'once']).default('always'),
    }),
  )
  .max(50)
