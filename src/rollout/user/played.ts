import { isPaddockError, PaddockError } from '../../core/index.ts'
import { leaveWord, type Said, type TaskUser } from '../../envs/index.ts'
import { chatClient } from '../harnesses/chat.ts'
import type { Played, Player, UserSession } from './contract.ts'

/** Characters of one thing that the agent says, and of all that was said before. It could bring the model beyond its context with either. */
const maxSaid = 16_384
const maxPast = 65_536
/** Of one try, and how many of those the SDK makes where the server is busy or out. */
const tryMs = 120_000
const retries = 3
/** Answers that are asked for before one that holds nothing is a fault. */
const answers = 3

/** A user in words of its own: it leaves with {@link leaveWord}. Closing it ends its connections. */
export async function playedUser(
  user: Extract<TaskUser, { by: 'model' }>,
  { baseUrl, apiKey, model, opening }: UserSession,
): Promise<Player & AsyncDisposable> {
  const { client, dispatcher } = await chatClient({ baseUrl, apiKey })
  const system = { role: 'system' as const, content: playing(user, opening) }
  const { temperature, maxTokens, seed } = user
  const ask = async (talk: readonly Said[], signal: AbortSignal): Promise<Played> => {
    const messages = [system, ...lastOf(talk)]
    let why = ''
    for (let nth = 0; nth < answers; nth += 1) {
      const { data, request_id: callId } = await client.chat.completions
        .create(
          { model, messages, temperature, max_tokens: maxTokens, ...(seed === undefined ? {} : { seed }) },
          { signal, timeout: tryMs, maxRetries: retries },
        )
        .withResponse()
      const choice = data.choices?.[0]
      const refusal = choice?.message?.refusal ?? (choice?.finish_reason === 'content_filter' ? 'a filter' : null)
      const text = (choice?.message?.content ?? '').trim()
      if (refusal === null && text !== '') {
        if (text.includes(leaveWord)) return { text: null, over: 'left', callId }
        return { text, over: null, callId, ...(choice?.finish_reason === 'length' ? { cut: true } : {}) }
      }
      why = refusal === null ? 'said nothing' : `refused: ${refusal}`
    }
    throw failed(why)
  }
  return {
    reply: async (talk, signal) => {
      try {
        return await ask(talk, signal)
      } catch (error) {
        signal.throwIfAborted()
        if (isPaddockError(error)) throw error
        throw failed(`did not answer: ${error instanceof Error ? error.message : String(error)}`, error)
      }
    },
    [Symbol.asyncDispose]: () => dispatcher.destroy(),
  }
}

function playing({ persona, goal }: Extract<TaskUser, { by: 'model' }>, opening: string): string {
  return [
    'You play a person who talks with an assistant. You are never the assistant, and you do none of its work.',
    `Who you are: ${persona}`,
    `What you want and know, which the assistant is not shown: ${goal}`,
    `You began with: ${opening}`,
    'Each message is what the assistant says to you. Answer with the next thing that this person says, in a sentence or two. Say what it asks for when it asks for it, and make up nothing that does not stand above. Do not read out these instructions.',
    `When you have what you want, or nothing more can come of it, answer with ${leaveWord} alone.`,
  ].join('\n\n')
}

/** What was said, as the model that simulates the user hears it: the last of it that fits. */
function lastOf(talk: readonly Said[]): { readonly role: 'user' | 'assistant'; readonly content: string }[] {
  const heard = talk.map(({ by, text }) => ({
    role: by === 'agent' ? ('user' as const) : ('assistant' as const),
    content: text.length <= maxSaid ? text : `${text.slice(0, maxSaid)}\n[… cut]`,
  }))
  let left = maxPast
  const first = heard.findLastIndex(({ content }) => (left -= content.length) < 0)
  // Templates that take turns begin with the user's.
  const kept = heard.slice(first + 1)
  return kept[0]?.role === 'assistant' ? kept.slice(1) : kept
}

function failed(what: string, cause?: unknown): PaddockError {
  return new PaddockError('USER_FAILED', `The model that simulates the user ${what}`, { cause })
}
