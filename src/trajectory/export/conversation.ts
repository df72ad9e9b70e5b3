import { editObject } from '../../core/index.ts'
import type { Row, RowSegment } from '../rows-contract.ts'

/** True for what a model said: here, in the session that a row's begin was replayed from, or elsewhere. */
export function isAnswer({ origin, choice }: RowSegment): boolean {
  return origin === 'sampled' || (choice !== null && (origin === 'replayed' || origin === 'imported'))
}

/** True for rows of the main conversation: the last answer is one of it. */
export function isMain(row: Row): boolean {
  return row.segments.findLast(isAnswer)?.callClass === 'main'
}

/** True for a conversation from elsewhere: its answers are segments without tokens. */
export function isImported(row: Row): boolean {
  return row.segments.at(-1)?.origin === 'imported'
}

/** Role of a chat message given as JSON text, empty where it has none. */
export function roleOf(message: string): string {
  const parsed: unknown = JSON.parse(message)
  if (typeof parsed !== 'object' || parsed === null || !('role' in parsed)) return ''
  return typeof parsed.role === 'string' ? parsed.role : ''
}

/** Imitation needs no logprobs, so a segment that lacks them is as good as another. */
export function imitates(segment: RowSegment): boolean {
  return segment.trained || segment.maskReason === 'missing_logprob' || segment.origin === 'imported'
}

/**
 * Places of a conversation's answers that its row must not train: another row owns them, they were not sampled here, or the file that
 * they were imported from says so.
 */
export function untrainedIn(messages: readonly string[], row: Row): Set<number> {
  const answers = messages.flatMap((text, index) => (roleOf(text) === 'assistant' ? [index] : []))
  if (isImported(row)) return new Set(answers.filter((index) => isWithoutTraining(messages[index] ?? '')))
  const said = row.segments.filter(isAnswer)
  const untrained = new Set<number>()
  for (const [nth, index] of answers.entries()) {
    // After a fork earlier answers are prompt text of this row, and only the last one is known to be sampled in it.
    const segment = answers.length === said.length ? said[nth] : nth === answers.length - 1 ? said.at(-1) : undefined
    if (segment === undefined || !imitates(segment)) untrained.add(index)
  }
  return untrained
}

/** Whether a chat message given as JSON text must not train: `"weight": 0`, as OpenAI's fine-tuning reads it. */
export function isWithoutTraining(message: string): boolean {
  const parsed: unknown = JSON.parse(message)
  return typeof parsed === 'object' && parsed !== null && 'weight' in parsed && parsed.weight === 0
}

/** The message with `"weight": 0`; every other byte stays. */
export function withoutTraining(message: string): string {
  if (isWithoutTraining(message)) return message
  return editObject(new TextEncoder().encode(message), { set: { weight: '0' } }).toString()
}
