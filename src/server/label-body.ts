import { z } from 'zod'

/** A label as somebody gives it. */
export const labelBody = z.strictObject({
  name: z.string().trim().min(1).max(100),
  value: z.string().trim().min(1).max(1000),
})
