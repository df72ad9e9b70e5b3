import { z } from 'zod'

/** What an agent says to the user it works for, or hears; or to the other agents of its task. */
export interface Said {
  readonly by: 'agent' | 'user'
  /** Which of several agents. */
  readonly agent?: string
  readonly text: string
}

const bounds = {
  /**
   * How the agent's words come to the user. `turns`: what a turn of the harness ends with is said, and the reply is the next prompt of
   * its conversation; `tool`: the agent calls `ask_user`; `any`: turns where the harness can be asked again, else the tool.
   */
  way: z.enum(['any', 'turns', 'tool']).default('any'),
  /** Replies after which the user says no more. */
  maxTurns: z.int().min(1).max(200),
}

/** The word with which a user who is simulated by a model leaves. */
export const leaveWord = '###STOP###'

/**
 * The user of a task: who answers the agent between its turns. What stands here stays on the host, whatever the user then says of it.
 * `record`: the replies in their order, then the user has left. `model`: the model of `engines.user` speaks as the persona.
 */
export const taskUserSchema = z.discriminatedUnion('by', [
  z.strictObject({ ...bounds, by: z.literal('record'), replies: z.array(z.string().trim().min(1)).max(200) }),
  z.strictObject({
    ...bounds,
    by: z.literal('model'),
    /** Who it is and how it speaks. */
    persona: z.string().trim().min(1),
    /** What it wants, what it knows, and when it is content. The agent is told of it only what the user says. */
    goal: z.string().trim().min(1),
    temperature: z.number().min(0).max(2).default(0),
    /** Of one reply. */
    maxTokens: z.int().min(1).default(512),
    /** Sent with each of its calls. Left out: the engine's own. */
    seed: z.int().min(0).optional(),
  }),
])

/** A user as the author of an environment writes it. */
export type TaskUserSpec = z.input<typeof taskUserSchema>
/** With every default filled in. */
export type TaskUser = z.output<typeof taskUserSchema>
