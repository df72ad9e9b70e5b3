import { z } from 'zod'
import { isId } from '../core/index.ts'

const id = z.string().refine(isId, 'not an id')

/** What somebody says of a rollout. */
export const verdictBody = z
  .strictObject({
    source: z.string().regex(/^[A-Za-z0-9][\w.-]{0,63}$/, 'must be letters, digits, dots, dashes and underscores'),
    reward: z.number().nullable().optional(),
    status: z
      .enum(['scored', 'hacked', 'pending', 'unscorable', 'infra_error', 'gold_error', 'judge_failed'])
      .optional(),
    reason: z.string().optional(),
    by_policy: z.record(z.string(), z.number()).optional(),
    components: z.record(z.string(), z.number()).optional(),
    steps: z.array(z.strictObject({ call_id: id, value: z.number() })).optional(),
    evidence: z.string().optional(),
  })
  .refine(({ reward, reason }) => reason === undefined || typeof reward !== 'number', {
    path: ['reason'],
    message: 'says why there is no number, and there is one: what speaks for it is `evidence`',
  })
  .transform(({ by_policy: byPolicy, steps, ...given }) => ({
    ...given,
    ...(byPolicy === undefined ? {} : { byPolicy }),
    ...(steps === undefined ? {} : { steps: steps.map(({ call_id: callId, value }) => ({ callId, value })) }),
  }))
