import { z } from 'zod'

/** One of the agents of a task. */
const taskAgent = z.strictObject({
  /** It works under the policy of this name. */
  name: z.string().regex(/^[a-z][a-z0-9-]{0,39}$/, 'must be lower case letters, digits and dashes'),
  /** What it is asked first. */
  prompt: z.string().trim().min(1),
  /** What is added to its harness's own system prompt. Left out: nothing. */
  systemPrompt: z.string().optional(),
  /** Names of the task's tools that it is offered. Left out: all of them. */
  tools: z.array(z.string()).optional(),
})

/**
 * The agents that a task needs, the first one first. Each has a session of its own under the policy of its name. `turns`: each is a harness of its
 * own in the one box; when one has ended its turn, the next is told what was said since its last. `program`: one harness asks as all of them.
 */
export const taskAgentsSchema = z
  .discriminatedUnion('by', [
    z.strictObject({
      by: z.literal('turns'),
      agents: z.array(taskAgent).min(2),
      /** Turns of all agents together, after which the work is over. */
      maxTurns: z.int().min(1).max(1000),
      /** The work is over with the turn that ends with words in which this stands. Left out: no word ends it. */
      doneWord: z.string().min(1).optional(),
    }),
    z.strictObject({ by: z.literal('program'), agents: z.array(taskAgent).min(2) }),
  ])
  .refine(({ agents }) => new Set(agents.map(({ name }) => name)).size === agents.length, {
    path: ['agents'],
    message: 'must have names of their own',
  })

/** Agents as the author of an environment writes them. */
export type TaskAgentsSpec = z.input<typeof taskAgentsSchema>
/** With every default filled in. */
export type TaskAgents = z.output<typeof taskAgentsSchema>
export type TaskAgent = TaskAgents['agents'][number]
