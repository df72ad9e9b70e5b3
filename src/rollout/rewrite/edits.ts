import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import { withoutTraining } from '../../trajectory/index.ts'

const message = z.looseObject({ role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']) })

/** A rewrite as somebody asks for it: one line of a file. */
export const rewriteSchema = z.strictObject({
  /** Rollout that is rewritten: its id or the end of it. */
  rollout: z.string().min(1).optional(),
  /** Who wrote it: a person, a model. */
  by: z.string().min(1).max(200),
  reason: z.string().max(2000).optional(),
  /** Messages `[from, to)` of the recorded conversation, counted from 0, give way to others. */
  edits: z
    .array(
      z.strictObject({
        from: z.int().min(0),
        /** Default: `from + 1`. Null: the end. Equal to `from`: nothing gives way. */
        to: z.int().min(0).nullable().optional(),
        messages: z.array(message),
      }),
    )
    .min(1),
  /** `edits`: the answers that were there before get `"weight": 0`, which keeps them out of fine-tuning. */
  trains: z.enum(['all', 'edits']).default('all'),
  /** What the task's verifier takes for the answer. Without it the rewritten rollout has no verdict. */
  answer: z.string().optional(),
  labels: z.record(z.string().min(1), z.string()).default({}),
})

/** Parsed {@link rewriteSchema}. */
export type Rewrite = z.infer<typeof rewriteSchema>

interface Rewritten {
  readonly messages: readonly string[]
  /** Index of the first recorded message that gave way, or behind which something came. */
  readonly first: number
}

/** The conversation of a rewrite, of messages as JSON texts. Throws `REWRITE_REFUSED` with the place for edits that do not fit. */
export function rewritten(messages: readonly string[], { edits, trains }: Rewrite, place: string): Rewritten {
  const sorted = edits
    .map((edit, nth) => {
      const to = edit.to === undefined ? edit.from + 1 : (edit.to ?? messages.length)
      if (to < edit.from || to > messages.length) {
        const range = `[${edit.from}, ${to})`
        throw refused(`${place}: edits.${nth} is of messages ${range}, and the conversation has ${messages.length}`)
      }
      return { from: edit.from, to, messages: edit.messages, nth }
    })
    .toSorted((a, b) => a.from - b.from || a.nth - b.nth)
  const isAnswer = (text: string): boolean => read.parse(JSON.parse(text)).role === 'assistant'
  const kept = (text: string): string => (trains === 'edits' && isAnswer(text) ? withoutTraining(text) : text)
  const out: string[] = []
  let at = 0
  for (const edit of sorted) {
    if (edit.from < at) throw refused(`${place}: edits.${edit.nth} is of messages that another edit takes away`)
    out.push(...messages.slice(at, edit.from).map(kept), ...edit.messages.map((one) => JSON.stringify(one)))
    at = edit.to
  }
  out.push(...messages.slice(at).map(kept))
  const last = out.at(-1)
  if (last === undefined || read.parse(JSON.parse(last)).role !== 'assistant') {
    throw refused(`${place}: the new conversation does not end with an answer`)
  }
  // What the harness itself left open is not the fault of an edit.
  const fault = faultOf(messages) === null ? faultOf(out) : null
  if (fault !== null) throw refused(`${place}: ${fault} in the new conversation`)
  if (out.length === messages.length && out.every((text, i) => text === messages[i])) {
    throw refused(`${place}: nothing is other than before`)
  }
  return { messages: out, first: sorted[0]?.from ?? 0 }
}

const read = z.looseObject({
  role: z.string(),
  tool_calls: z.array(z.looseObject({ id: z.string() })).nullish(),
  tool_call_id: z.string().nullish(),
})

/** What no model can have had, null where there is nothing: results of calls that nobody made, calls that nobody answered. */
function faultOf(messages: readonly string[]): string | null {
  let open = new Set<string>()
  for (const [i, text] of messages.entries()) {
    const { role, tool_calls: calls, tool_call_id: answers } = read.parse(JSON.parse(text))
    if (role === 'tool') {
      if (!open.delete(answers ?? '')) return `message ${i} is the result of a tool call that does not stand before it`
      continue
    }
    const [waiting] = open
    if (waiting !== undefined) return `message ${i} comes before the result of the tool call ${waiting}`
    open = new Set(role === 'assistant' ? (calls ?? []).map(({ id }) => id) : [])
  }
  return null
}

/** Why there is no rewrite. */
export function refused(what: string): PaddockError {
  return new PaddockError('REWRITE_REFUSED', what)
}
