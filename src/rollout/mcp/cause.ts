import { isDeepStrictEqual } from 'node:util'
import type { Id } from '../../core/index.ts'
import { askedCalls } from '../../reward/index.ts'
import type { RecorderReader } from '../../trajectory/index.ts'

/** The model call whose answer asked for a tool call, and the id that the model's answer gave it. */
export interface ToolCause {
  readonly callId: Id
  readonly toolCallId: string
}

/**
 * Finds, for a tool call that arrives by MCP, the answer that asked for it: MCP carries no such link, but every answer
 * is recorded before its client can act on it. Each recorded tool call is given out once, the oldest that fits first.
 */
export class CauseFinder {
  readonly #recorder: Pick<RecorderReader, 'session'>
  readonly #sessionId: () => Id | null
  readonly #given = new Set<string>()

  constructor(recorder: Pick<RecorderReader, 'session'>, sessionId: () => Id | null) {
    this.#recorder = recorder
    this.#sessionId = sessionId
  }

  /** Null where no recorded answer asks for this tool with these arguments. Never throws. */
  async find(tool: string, input: unknown): Promise<ToolCause | null> {
    const sessionId = this.#sessionId()
    if (sessionId === null) return null
    try {
      const { calls } = await this.#recorder.session(sessionId, { bodies: [] })
      for (const { intent, commit } of calls) {
        for (const [index, choice] of (commit?.choices ?? []).entries()) {
          const found = this.#take(`${intent.id} ${index}`, choice.message, tool, input)
          if (found !== null) return { callId: intent.id, toolCallId: found }
        }
      }
    } catch {
      // A link that cannot be read is left out; the tool's own outcome is what counts.
    }
    return null
  }

  #take(place: string, message: string, tool: string, input: unknown): string | null {
    if (!message.includes(tool)) return null
    for (const [index, asked] of askedCalls(message).entries()) {
      const key = `${place} ${index}`
      // Clients put a prefix of their own before the names of MCP tools (`mcp__server__tool`; opencode: `server_tool`).
      const named = asked.name === tool || asked.name.endsWith(`_${tool}`)
      if (!named || this.#given.has(key) || !isDeepStrictEqual(asked.input, input)) continue
      this.#given.add(key)
      return asked.id ?? key
    }
    return null
  }
}
