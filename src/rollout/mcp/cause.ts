import { isDeepStrictEqual } from 'node:util'
import type { Id } from '../../core/index.ts'
import type { CommittedAnswer } from '../../proxy/index.ts'
import { type AskedCall, askedCalls } from '../../reward/index.ts'

/** The model call whose answer asked for a tool call, and the id that the model's answer gave it. */
export interface ToolCause {
  readonly callId: Id
  readonly toolCallId: string
}

/** Tool calls per tool that were asked for and have not come yet: what is beyond never will. */
const maxOpen = 256

/**
 * Finds, for a tool call that arrives by MCP, the answer that asked for it: MCP carries no such link, but every answer is
 * committed, and told here, before its client can act on it. Each asked tool call is given out once, the oldest that fits
 * first. What a lookup costs depends on the tool calls that are still open, not on the length of the session.
 */
export class CauseFinder {
  readonly #open: ReadonlyMap<string, (ToolCause & Pick<AskedCall, 'input'>)[]>

  /** @param tools - Names of the tools that are offered over MCP. */
  constructor(tools: readonly string[]) {
    this.#open = new Map(tools.map((tool) => [tool, []]))
  }

  /** Takes what an answer asks for. */
  note({ callId, messages }: CommittedAnswer): void {
    for (const [choice, message] of messages.entries()) {
      for (const [index, asked] of askedCalls(message).entries()) {
        const open = this.#openOf(asked.name)
        open?.push({ callId, toolCallId: asked.id ?? `${callId} ${choice} ${index}`, input: asked.input })
        if (open !== undefined && open.length > maxOpen) open.shift()
      }
    }
  }

  /** Null where no answer asks for this tool with these arguments. */
  find(tool: string, input: unknown): ToolCause | null {
    const open = this.#open.get(tool) ?? []
    const at = open.findIndex((asked) => isDeepStrictEqual(asked.input, input))
    const [found] = at === -1 ? [] : open.splice(at, 1)
    return found === undefined ? null : { callId: found.callId, toolCallId: found.toolCallId }
  }

  /** Clients put a prefix of their own before the names of MCP tools (`mcp__server__tool`; opencode: `server_tool`). */
  #openOf(asked: string) {
    const known = this.#open.get(asked)
    if (known !== undefined) return known
    for (const [tool, open] of this.#open) if (asked.endsWith(`_${tool}`)) return open
    return undefined
  }
}
