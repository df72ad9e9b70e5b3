import type { ErrorCode } from '../../core/index.ts'
import { readOverflow } from './translate/overflow.ts'

/** An engine's error body, as read. */
export interface EngineSays {
  readonly status: number
  readonly message: string
  readonly type: string | null
  readonly param: string | null
  readonly code: string
}

/** The code of a refusal, and the members that it blames. */
export interface RefusalReason {
  readonly code: Extract<ErrorCode, 'CONTEXT_OVERFLOW' | 'ENGINE_ERROR' | 'ENGINE_UNPARSED'>
  /** Members of the request that the engine refuses; empty: it refuses for another reason. */
  readonly blames: readonly string[]
}

/**
 * Reasons that blame the request, by the statuses that they come with. Any other reason is the engine's fault
 * or ours (invariant I7).
 */
const table: readonly {
  readonly statuses: readonly number[]
  /** The members that this refusal blames; null: it gives another reason. */
  readonly blames: (said: EngineSays) => readonly string[] | null
}[] = [
  { statuses: [400, 413, 422], blames: (said) => (isOverflow(said) ? [overflowing(said)] : null) },
  {
    statuses: [413],
    blames: ({ message }) =>
      /\b(?:entity|payload|body|content|request) too large\b/i.test(message) ? ['messages'] : null,
  },
  { statuses: [400, 422], blames: ({ message }) => (/\broles must alternate\b/i.test(message) ? ['messages'] : null) },
  { statuses: [400, 422], blames: namedMembers },
]

/** Reads why an engine refused a request. */
export function refusalReason(said: EngineSays): RefusalReason {
  const code = isUnparsed(said.message) ? 'ENGINE_UNPARSED' : isOverflow(said) ? 'CONTEXT_OVERFLOW' : 'ENGINE_ERROR'
  for (const { statuses, blames } of table) {
    const blamed = statuses.includes(said.status) ? blames(said) : null
    if (blamed !== null) return { code, blames: blamed }
  }
  return { code, blames: [] }
}

/** The engine sampled an answer, and its own parser failed on it (llama.cpp `common/chat.cpp`; vLLM's and SGLang's parsers). */
export function isUnparsed(message: string): boolean {
  return /\bfailed to parse (?:the )?(?:model )?(?:output|input)\b|\bparse (?:in|out)put at pos\b|\bpeg-\w+ format\b/i.test(
    message,
  )
}

const overflowStatuses: readonly number[] = [400, 413, 422]

/** vLLM, SGLang, llama.cpp (`exceed_context_size_error`), OpenAI (`context_length_exceeded`). */
function isOverflow({ status, message, type, code }: EngineSays): boolean {
  if (!overflowStatuses.includes(status)) return false
  if (code === 'context_length_exceeded' || type === 'exceed_context_size_error') return true
  return /context (length|window|size)|max_model_len|maximum.*tokens|too (long|many tokens)/i.test(message)
}

/** A bound as large as the context leaves no room for any prompt; a smaller one was passed by a prompt that grew. */
function overflowing({ message }: EngineSays): string {
  const { output, limit } = readOverflow(message)
  return output !== null && limit !== null && Number(output) >= Number(limit) ? 'max_tokens' : 'messages'
}

/** Other forms than `param` in which engines name the member that they refuse: pydantic's location, and a sentence about it. */
const forms: readonly RegExp[] = [
  /["']loc["']:\s*[([]\s*["']body["'],\s*["'](\w+)["']/g,
  /^["'`]?(\w+)["'`]? (?:must|should|cannot|has to|is too)\b/g,
]

function namedMembers({ message, param }: EngineSays): readonly string[] | null {
  const named = forms.flatMap((form) => [...message.matchAll(form)].flatMap(([, member]) => member ?? []))
  const own = /^(?:body\.)?(\w+)/.exec(param ?? '')?.[1]
  const members = own === undefined ? named : [own, ...named]
  return members.length === 0 ? null : [...new Set(members)]
}
