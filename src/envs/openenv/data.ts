import { z } from 'zod'
import { scriptStepSchema } from '../run-script.ts'

const script = z.array(scriptStepSchema)

/** What stands under `data` in a task file. */
export const fileDataSchema = z.strictObject({
  /** What the environment is reset with: `seed` and whatever else it takes. */
  reset: z.record(z.string(), z.unknown()).default({}),
  /** Steps that earn 1, where somebody knows them: for `paddock validate` and the scripted engine. */
  oracle: script.optional(),
  /** Steps that must earn 0. */
  cheats: z.array(script).optional(),
})

/** A tool, as the agent is offered it. */
export const offeredSchema = z.object({
  name: z.string(),
  description: z.string(),
  inputSchema: z.looseObject({ type: z.literal('object') }),
})
export type Offered = z.infer<typeof offeredSchema>

/** `Task.data`: what the file says, and what the server said when the task was loaded. */
export const openEnvDataSchema = fileDataSchema.extend({
  /** `tools`: a step calls one of the environment's MCP tools; `action`: a step is an action of its own schema. */
  steps: z.enum(['tools', 'action']),
  tools: z.array(offeredSchema).min(1),
  /** What the agent is told of the start; a reset that starts elsewhere is another task. */
  start: z.string(),
})
export type OpenEnvData = z.infer<typeof openEnvDataSchema>
