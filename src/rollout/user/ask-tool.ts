import { z } from 'zod'
import { isPaddockError } from '../../core/index.ts'
import { defineTool, type Tool } from '../../envs/index.ts'
import type { UserConversation } from './conversation.ts'

export const askUserName = 'ask_user'

/** How an agent speaks to its user whose harness cannot be asked again. */
export function askUserTool(conversation: UserConversation): Tool {
  return defineTool({
    name: askUserName,
    description: 'Says something to the user whom you work for, and gives the reply.',
    input: z.object({ message: z.string().min(1).describe('What you say.') }),
    run: async ({ signal }, { message }) => {
      try {
        const reply = await conversation.hear(message, signal)
        return reply === null
          ? { status: 'ok', text: 'The user has left the conversation.' }
          : { status: 'ok', text: reply }
      } catch (error) {
        if (signal.aborted || !isPaddockError(error)) throw error
        return { status: 'infra', text: error.line(), fault: error }
      }
    },
  })
}
