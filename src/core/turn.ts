/**
 * The canonical form of a conversation, the common ground of all dialects (invariant I10). Argument strings are
 * the raw text that the model or the client wrote, never re-serialised.
 */
export interface Turn {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool'
  readonly parts: readonly TurnPart[]
  readonly toolCalls: readonly ToolCall[]
  /** For role `tool`: which call this answers. */
  readonly toolCallId: string | null
  /** Thinking of an assistant turn, null when none was given. */
  readonly reasoning: string | null
  readonly name: string | null
}

export type TurnPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'media'; readonly mediaType: string; readonly sha256: string | null; readonly url: string | null }
  | { readonly type: 'refusal'; readonly text: string }

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** Raw JSON text as written. */
  readonly argumentsText: string
}
