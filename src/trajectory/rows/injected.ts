import type { Event, Id } from '../../core/index.ts'
import type { SessionLog } from '../contract/index.ts'
import type { PathStep } from './forest.ts'

type Injected = Extract<Event, { kind: 'injected' }>
type Edit = NonNullable<Injected['edits']>[number]

/** What was put into the tokens of a step of a path; positions count from the step's first token. */
interface StepEdit extends Edit {
  readonly labels: readonly string[]
}

/** What the policy saw beyond what its harness wrote, over the paths of a session. */
export class InjectedParts {
  readonly #ofCall = new Map<Id, Injected>()

  constructor({ events }: Pick<SessionLog, 'events'>) {
    for (const event of events) if (event.kind === 'injected') this.#ofCall.set(event.callId, event)
  }

  /** No session of an agent without injections has any. */
  get none(): boolean {
    return this.#ofCall.size === 0
  }

  /**
   * Per step what was put into it, ascending; null where nobody knows. Of a prompt each call tells what its own segments hold: what
   * earlier prompts share with it they tell themselves.
   */
  of(path: readonly PathStep[]): readonly (readonly StepEdit[] | null)[] {
    let end = 0
    return path.map(({ segment, length }) => {
      const start = end
      end += length
      const told = segment.callId === null ? undefined : this.#ofCall.get(segment.callId)
      const isPrompt = segment.choice === null
      if (told === undefined || !isPrompt) return nothing
      if (told.edits === null) return null
      const own = told.edits.filter((edit) => edit.end > start || (edit.end === start && edit.start === start))
      const before = own.filter((edit) => edit.start < end)
      if (before.some((edit) => edit.start < start || edit.end > end)) return null
      return before.map((edit) => ({ ...edit, start: edit.start - start, end: edit.end - start, labels: told.labels }))
    })
  }
}

const nothing: readonly StepEdit[] = []

/** The tokens of a step without what was put in. */
export function withoutInjected(tokens: Int32Array, edits: readonly Edit[]): Int32Array {
  const parts: Int32Array[] = []
  let from = 0
  for (const { start, end, ids } of edits) {
    parts.push(tokens.subarray(from, start), Int32Array.from(ids))
    from = end
  }
  parts.push(tokens.subarray(from))
  const size = parts.reduce((sum, part) => sum + part.length, 0)
  const whole = new Int32Array(size)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
