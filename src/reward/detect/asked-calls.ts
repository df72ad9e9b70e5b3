import { maxNesting, nestingDepth } from '../../core/index.ts'

/** A tool call inside a recorded answer, whatever the dialect. */
export interface AskedCall {
  /** The id that the answer gives it; null where the dialect gives none. */
  readonly id: string | null
  readonly name: string
  /** Parsed where it is JSON text, else as it stands. */
  readonly input: unknown
}

/**
 * Tool calls anywhere in an answer as its client saw it: chat `function`, responses `function_call`, messages `tool_use`,
 * gemini `functionCall`. In order; none for a text that is not JSON, or nested deeper than anybody could walk through.
 */
export function askedCalls(message: string): readonly AskedCall[] {
  if (isTooDeep(message)) return []
  try {
    return within(JSON.parse(message), null)
  } catch {
    return []
  }
}

function within(value: unknown, id: string | null): readonly AskedCall[] {
  if (Array.isArray(value)) return value.flatMap((item) => within(item, null))
  if (!isRecord(value)) return []
  const own = [value['call_id'], value['id'], id].find((one) => typeof one === 'string')
  const ownId = typeof own === 'string' ? own : null
  const { name } = value
  const input = ['arguments', 'input', 'args'].map((key) => value[key]).find((one) => one !== undefined)
  if (typeof name === 'string' && input !== undefined) return [{ id: ownId, name, input: parsed(input) }]
  return Object.values(value).flatMap((inner) => within(inner, ownId))
}

function isTooDeep(json: string): boolean {
  return nestingDepth(Buffer.from(json)) > maxNesting
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

function parsed(input: unknown): unknown {
  if (typeof input !== 'string' || isTooDeep(input)) return input
  try {
    return JSON.parse(input === '' ? '{}' : input)
  } catch {
    return input
  }
}
