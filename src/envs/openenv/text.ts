import { z } from 'zod'
import { clipped } from '../outcome.ts'
import type { ToolOutcome } from '../contract.ts'
import type { Observed } from './session.ts'

const over = '\n[The episode is over.]'

/** What of an observation is the agent's to read: all but `metadata`. The reward is nobody's but the verdict's. */
export function observationText({ observation }: Observed): string {
  const { metadata: _, ...seen } = observation
  return Object.keys(seen).length === 0 ? '' : JSON.stringify(seen)
}

export function actionOutcome(observed: Observed): ToolOutcome {
  return { status: 'ok', text: clipped(observationText(observed)) + (observed.done ? over : '') }
}

// CallToolObservation of openenv 0.10.0, whose `result` is fastmcp's where the tool is one of FastMCP.
const called = z.object({
  result: z.unknown(),
  error: z.object({ error_type: z.string(), message: z.string() }).nullish(),
})
const mcpResult = z.object({
  content: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })).min(1),
  is_error: z.boolean().optional(),
})

/** Null: the environment itself could not reach its tool, or answered something else than a tool's result. */
export function toolCallOutcome(observed: Observed): ToolOutcome | null {
  const read = called.safeParse(observed.observation)
  if (!read.success) return null
  const { error, result } = read.data
  const said = (status: ToolOutcome['status'], text: string): ToolOutcome => ({
    status,
    text: clipped(text) + (observed.done ? over : ''),
  })
  if (error?.error_type === 'transport_error') return null
  if (error != null) return said(error.error_type === 'timeout' ? 'timeout' : 'error', error.message)
  const told = mcpResult.safeParse(result)
  if (!told.success) return said('ok', typeof result === 'string' ? result : JSON.stringify(result ?? null))
  const texts = told.data.content.map((part) => part.text ?? JSON.stringify(part))
  return said(told.data.is_error === true ? 'error' : 'ok', texts.join('\n'))
}
