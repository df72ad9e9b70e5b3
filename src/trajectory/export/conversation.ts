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
