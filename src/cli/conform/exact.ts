import { z } from 'zod'
import { type Id, PaddockError } from '../../core/index.ts'
import type { Row } from '../../trajectory/index.ts'

const ids = z.array(z.int())
const line = z.looseObject({
  kind: z.string(),
  requestId: z.string().default(''),
  promptTokenIds: ids.default([]),
  choices: z.array(z.looseObject({ index: z.int(), tokenIds: ids })).default([]),
})
const answer = z.object({ lines: z.array(line) })

/** What the scripted engine wrote down of its generations: its own word, apart from anything that Paddock stored. */
export type Journal = readonly z.infer<typeof line>[]

/** Throws `ENGINE_ERROR` when it is not what it should be. */
export async function readJournal(control: string, signal: AbortSignal): Promise<Journal> {
  const response = await fetch(`${control}/journal`, { signal })
  const parsed = answer.safeParse(await response.json())
  if (!parsed.success) throw new PaddockError('ENGINE_ERROR', `the scripted engine's journal is not readable`)
  return parsed.data.lines.filter(({ kind }) => kind === 'generation')
}

/** Counts of tokens. */
export interface ExactTokens {
  readonly trainable: number
  /** Of them, those whose row up to them and whose ids are the journal's. */
  readonly exact: number
}

/** Compares rows with the journal, segment by segment. */
export function exactTokens(rows: readonly Row[], journal: Journal): ExactTokens {
  let trainable = 0
  let exact = 0
  for (const row of rows) {
    for (const { trained, callId, choice, start, end } of row.segments) {
      if (!trained) continue
      trainable += end - start
      const made = callId === null ? undefined : generationOf(journal, callId)
      const sampled = made?.choices.find(({ index }) => index === (choice ?? 0))?.tokenIds ?? null
      if (made === undefined || sampled === null) continue
      const context = row.tokens.subarray(0, start)
      if (same(context, made.promptTokenIds) && same(row.tokens.subarray(start, end), sampled)) exact += end - start
    }
  }
  return { trainable, exact }
}

// The engine puts its own prefix before the id that it is given. A call that was resubmitted has several lines: the last.
function generationOf(journal: Journal, callId: Id): Journal[number] | undefined {
  return journal.findLast(({ requestId }) => requestId.endsWith(callId))
}

function same(a: Int32Array, b: readonly number[]): boolean {
  return a.length === b.length && a.every((id, at) => id === b[at])
}
