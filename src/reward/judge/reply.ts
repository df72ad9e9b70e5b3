import { z } from 'zod'
import type { RubricItem } from './rubric.ts'

/** What a judge said of one item. */
export interface Judged {
  readonly choice: string
  readonly explanation: string
}

export type Reading = { readonly ok: true; readonly judged: Judged } | { readonly ok: false; readonly why: string }

/** The schema that a judge with structured output is held to. */
export function replySchema(item: RubricItem, mark: string): Record<string, unknown> {
  return {
    type: 'object',
    additionalProperties: false,
    required: ['mark', 'explanation', 'choice'],
    properties: {
      mark: { type: 'string', enum: [mark] },
      explanation: { type: 'string' },
      choice: { type: 'string', enum: [...item.choices] },
    },
  }
}

/**
 * Reads a reply: the whole of it is one JSON object of that schema, at most inside one code fence and behind a closed
 * `<think>`. Numbers found somewhere in prose, a nearly right word, another mark: no reading.
 */
export function readReply(text: string, item: RubricItem, mark: string): Reading {
  const plain = text
    .replace(/^\s*<think>[\s\S]*?<\/think>/, '')
    .trim()
    .replace(/^```(?:json)?\n([\s\S]*)\n```$/, '$1')
  let value: unknown
  try {
    value = JSON.parse(plain)
  } catch {
    return { ok: false, why: 'it is not one JSON object' }
  }
  const parsed = judgedOf(item).extend({ mark: z.string() }).safeParse(value)
  if (!parsed.success) return { ok: false, why: z.prettifyError(parsed.error) }
  const { choice, explanation } = parsed.data
  if (parsed.data.mark !== mark) return { ok: false, why: 'it does not carry the mark of this question' }
  return { ok: true, judged: { choice, explanation } }
}

/** An answer from a cache, checked as a reply is. Null: there is none, or it does not fit the item. */
export function readCached(value: unknown, item: RubricItem): Judged | null {
  return judgedOf(item).safeParse(value).data ?? null
}

function judgedOf({ choices }: RubricItem) {
  return z.strictObject({
    choice: z.string().refine((choice) => choices.includes(choice), `must be one of ${JSON.stringify(choices)}`),
    explanation: z.string().max(20_000),
  })
}
