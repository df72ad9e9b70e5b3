import { type ErrorCode, isPaddockError } from '../core/index.ts'
import type { AdmittedCall } from './call-contract.ts'

/**
 * Errors that tell a harness of its own mistake. Every other error that ends a call is a fault that must not be scored
 * (invariant I7).
 */
const ofTheAgent: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'BODY_ENCODING_UNKNOWN',
  'BODY_INVALID_JSON',
  'BODY_INVALID_SHAPE',
  'BODY_TOO_LARGE',
  'BUDGET_EXHAUSTED',
  'CONTEXT_OVERFLOW',
  'MODEL_UNKNOWN',
  'RESPONSE_UNKNOWN',
  'ROUTE_DENIED',
  'SESSION_CLOSED',
  'THREAD_UNKNOWN',
])

/** The cause of a fault; null: the agent caused the error. */
export function faultOf(error: unknown): ErrorCode | null {
  if (!isPaddockError(error)) return 'INTERNAL'
  return ofTheAgent.has(error.code) ? null : error.code
}

/** The engine refuses what the harness wrote, and nothing that Paddock wrote. */
export function isOwnRequest(
  blames: readonly string[],
  { request, set }: Pick<AdmittedCall, 'request' | 'set'>,
): boolean {
  return (
    blames.length > 0 &&
    blames
      .map(namesOf)
      .every((names) => names.some((name) => name in request.body) && !names.some((name) => name in set))
  )
}

/** The names that a member has in requests: chat, completion or embedding, and the old and new name of the bound. */
function namesOf(member: string): readonly string[] {
  if (member === 'messages') return ['messages', 'prompt', 'input']
  return member === 'max_tokens' || member === 'max_completion_tokens'
    ? ['max_tokens', 'max_completion_tokens']
    : [member]
}
