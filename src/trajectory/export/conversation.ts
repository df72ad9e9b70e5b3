/** Role of a chat message given as JSON text, empty where it has none. */
export function roleOf(message: string): string {
  const parsed: unknown = JSON.parse(message)
  if (typeof parsed !== 'object' || parsed === null || !('role' in parsed)) return ''
  return typeof parsed.role === 'string' ? parsed.role : ''
}
