import { z } from 'zod'
import type { Id } from '../core/index.ts'
import { askedCalls } from '../reward/index.ts'
import { type RecorderReader, withHindsight } from '../trajectory/index.ts'

const answer = z.looseObject({
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string().optional(), text: z.string().optional() }))]),
})

/**
 * The text that a session's conversation ended with; null where its last answer asks for a tool, or has no text. Side calls and sub-agents
 * are no part of it. Throws `STORE_*`.
 */
export async function lastSaid(recorder: Pick<RecorderReader, 'session'>, sessionId: Id): Promise<string | null> {
  const { calls } = withHindsight(await recorder.session(sessionId, { bodies: [] }))
  const last = calls.findLast(
    ({ intent, commit, superseded }) => intent.callClass === 'main' && !superseded && (commit?.choices.length ?? 0) > 0,
  )
  const message = last?.commit?.choices[0]?.message
  if (message === undefined || askedCalls(message).length > 0) return null
  const read = answer.safeParse(JSON.parse(message))
  if (!read.success) return null
  const { content } = read.data
  const text = typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('')
  return text === '' ? null : text
}
