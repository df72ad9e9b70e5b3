import type { Id } from '../../core/index.ts'
import type { SessionLog } from '../../trajectory/index.ts'
import { askedCalls } from './asked-calls.ts'

/** One thing that the agent asked to be done. */
export interface Action {
  readonly callId: Id
  readonly tool: string
  /** Shell lines among its arguments. */
  readonly command: string | null
  /** Paths that a file tool names. */
  readonly paths: readonly string[]
  /** All texts of its arguments. */
  readonly text: string
}

/** What the agent asked for, in order, and the texts that it said. Calls that its client never got are left out. */
export function actionsOf(sessions: readonly SessionLog[]): {
  readonly actions: readonly Action[]
  readonly answers: readonly { readonly callId: Id; readonly text: string }[]
} {
  const actions: Action[] = []
  const answers: { callId: Id; text: string }[] = []
  for (const { session, calls } of sessions) {
    if (session.role !== 'agent') continue
    for (const { intent, commit, superseded } of calls) {
      if (superseded) continue
      for (const { message } of commit?.choices ?? []) {
        const asked = askedCalls(message)
        for (const { name, input } of asked) actions.push(action(intent.id, name, input))
        if (asked.length === 0) answers.push({ callId: intent.id, text: message })
      }
    }
  }
  return { actions, answers }
}

function action(callId: Id, tool: string, input: unknown): Action {
  const fields: readonly (readonly [string, unknown])[] =
    typeof input === 'object' && input !== null ? Object.entries(input) : [['command', input]]
  const named = (pattern: RegExp) => fields.filter(([key]) => pattern.test(key)).flatMap(([, value]) => texts(value))
  const command = named(/^(?:command|cmd|script|code)$/i)
  return {
    callId,
    tool,
    command: command.length === 0 ? null : command.join(' '),
    paths: named(/path|^file$|file_?name|target/i),
    text: fields.flatMap(([, value]) => texts(value)).join('\n'),
  }
}

function texts(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(texts)
}
