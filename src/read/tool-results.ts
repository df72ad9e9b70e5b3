import type { Event } from '../core/index.ts'
import type { SessionLog } from '../trajectory/index.ts'
import { readMessage } from './messages.ts'

/** What a tool said to which arguments: what a virtual tool takes as its record. */
export interface ToolResult {
  readonly tool: string
  readonly args: unknown
  readonly status: 'ok' | 'error' | 'timeout'
  readonly text: string
}

interface Asked {
  readonly id: string
  readonly name: string
  readonly argumentsText: string
}

/** Results of the tools of a rollout, in their order, with the arguments that the model gave; and how many there are whose arguments are not known. */
export function toolResultsOf(
  logs: readonly SessionLog[],
  events: readonly Event[],
): { readonly results: readonly ToolResult[]; readonly unknown: number } {
  const asked = new Map<string, readonly Asked[]>()
  for (const { calls } of logs) {
    for (const { intent, commit } of calls) {
      const messages = (commit?.choices ?? []).map(({ message }) => readMessage(JSON.parse(message)))
      asked.set(
        intent.id,
        messages.flatMap(({ toolCalls }) => toolCalls),
      )
    }
  }
  const results: ToolResult[] = []
  let unknown = 0
  for (const event of events) {
    if (event.kind !== 'tool_result' || event.status === 'infra') continue
    const of = asked.get(event.callId ?? '') ?? []
    // Over MCP the harness numbers its calls by itself, and says the name in a form of its own.
    const named = of.filter(({ name }) => name === event.tool || name.endsWith(`_${event.tool}`))
    const found = of.find(({ id }) => id === event.toolCallId) ?? (named.length === 1 ? named[0] : undefined)
    const args = found === undefined ? undefined : argsOf(found.argumentsText)
    if (args === undefined) unknown += 1
    else results.push({ tool: event.tool, args, status: event.status, text: event.result })
  }
  return { results, unknown }
}

/** Undefined for what is no JSON: no tool ever ran with it. */
function argsOf(text: string): unknown {
  try {
    return JSON.parse(text === '' ? '{}' : text) as unknown
  } catch {
    return undefined
  }
}
