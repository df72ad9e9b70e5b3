import { z } from 'zod'

/** The problems of a value as one line, each with its place: `messages[0].role: Invalid option; tools: Invalid input`. */
export function problemsOf({ issues }: z.ZodError): string {
  return issues
    .map(({ path, message }) => (path.length === 0 ? message : `${z.core.toDotPath(path)}: ${message}`))
    .join('; ')
}
