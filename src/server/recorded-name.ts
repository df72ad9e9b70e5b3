import { z } from 'zod'

/** What a run or group may be called by whoever opened it; ids of Paddock's own are such names too. */
export const recordedName = z
  .string()
  .regex(/^[A-Za-z0-9][\w.-]{0,127}$/, 'must be up to 128 letters, digits, dots, dashes and underscores')
