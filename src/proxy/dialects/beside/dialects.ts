import type { Dialect } from '../contract.ts'
import { chatError } from '../chat/errors.ts'
import { BesideForm } from './reply.ts'
import { readBesideRequest } from './request.ts'

const noHandles = new Map<number, never>()

/** OpenAI's legacy completions: a text that is gone on with, beside the conversation. */
export const completionsDialect: Dialect = beside('completions', 'completion', { samples: true })

/** OpenAI's embeddings: nothing is sampled. */
export const embeddingsDialect: Dialect = beside('embeddings', 'embedding', { samples: false })

function beside(
  name: Dialect['name'],
  callClass: NonNullable<Dialect['beside']>,
  how: { readonly samples: boolean },
): Dialect {
  return {
    name,
    beside: callClass,
    read({ bytes, headers, path }) {
      const chat = readBesideRequest(bytes, headers, how)
      return { path, body: bytes, chat, handles: noHandles, reply: (callId) => new BesideForm(chat.wantsUsage, callId) }
    },
    error: chatError,
  }
}
