import type { Id, Verdict } from '../core/index.ts'

/** What became of one tool call. */
export interface ToolCallFact {
  /** The model call that asked for it; null where none could be found. */
  readonly callId: Id | null
  readonly tool: string
  readonly status: 'ok' | 'error' | 'timeout' | 'infra'
}

/**
 * Values on calls by what their tools came to: the share of a call's tools that ended well. A tool that failed on our side
 * (`infra`) says nothing of the call that asked for it.
 */
export function stepsByStatus(toolCalls: readonly ToolCallFact[]): Verdict['steps'] {
  const told = toolCalls.filter(({ status }) => status !== 'infra')
  const byCall = Map.groupBy(told, ({ callId }) => callId)
  return [...byCall].flatMap(([callId, of]) => {
    if (callId === null) return []
    return [{ callId, value: of.filter(({ status }) => status === 'ok').length / of.length }]
  })
}
