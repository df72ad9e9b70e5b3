import { z } from 'zod'
import type { RolloutEnd } from '../core/index.ts'

/** How a rollout ended. */
export const rolloutEnd = z.enum([
  'completed',
  'agent_timeout',
  'budget',
  'context_overflow',
  'horizon',
  'harness_crash',
  'cancelled',
  'infra',
] satisfies RolloutEnd[])
