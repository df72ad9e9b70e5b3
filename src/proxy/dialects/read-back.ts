import type { CallIntent } from '../../trajectory/index.ts'
import { EchoHandles } from '../session/echo-handles.ts'
import type { DialectMemory } from './contract.ts'
import { dialectNamed } from './registry.ts'

/** Knows no session: handles are foreign, and what an earlier response holds is not repeated. */
const nobody: DialectMemory = {
  handles: new EchoHandles(),
  responses: { put: () => {}, until: () => [] },
  answerOfToolCall: () => null,
  reasoningName: 'reasoning',
}

/**
 * The messages of a recorded request in the canonical chat form, whatever dialect it was asked in; none where the body
 * is not readable. Of a request that continues a stored response only what it added.
 */
export function requestMessages(
  intent: Pick<CallIntent, 'dialect' | 'path' | 'body' | 'startedAt'>,
): readonly unknown[] {
  try {
    const bytes = Buffer.from(intent.body)
    const input = { bytes, headers: {}, path: intent.path, now: intent.startedAt, memory: nobody }
    return dialectNamed(intent.dialect).read(input).chat.messages
  } catch {
    return []
  }
}
