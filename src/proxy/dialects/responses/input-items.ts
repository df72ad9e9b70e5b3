import { PaddockError } from '../../../core/index.ts'
import type { LooseObject } from '../../session/sampling.ts'
import type { CachedResponse } from './response-cache.ts'
import { responseId } from './output.ts'

const defaultLimit = 20
const mostItems = 100

/**
 * A page of what a stored response was given: the input of its request behind all that it continues, newest first unless
 * asked otherwise (API reference "List input items"). `turns` oldest first. Throws `BODY_INVALID_SHAPE`.
 */
export function inputItems(turns: readonly CachedResponse[], query: URLSearchParams): LooseObject {
  const all = turns.flatMap((turn, at) => {
    const output = turn.response['output']
    const answered = at === turns.length - 1 || !Array.isArray(output) ? [] : output.filter(isObject)
    return [...itemsOf(turn), ...answered]
  })
  const [limit, order, after] = [
    query.get('limit') ?? String(defaultLimit),
    query.get('order') ?? 'desc',
    query.get('after'),
  ]
  const count = Number(limit)
  if (!Number.isInteger(count) || count < 1 || count > mostItems)
    throw shape('limit', `an integer from 1 to ${mostItems}`)
  if (order !== 'asc' && order !== 'desc') throw shape('order', 'asc or desc')
  const ordered = order === 'asc' ? all : all.toReversed()
  const at = after === null ? -1 : ordered.findIndex(({ id }) => id === after)
  if (after !== null && at === -1) throw shape('after', 'the id of an item of this list')
  const data = ordered.slice(at + 1, at + 1 + count)
  return {
    object: 'list',
    data,
    first_id: data[0]?.['id'] ?? null,
    last_id: data.at(-1)?.['id'] ?? null,
    has_more: at + 1 + count < ordered.length,
  }
}

/** The input of one request as items, each with an id: its own, or one that is made of its place. */
function itemsOf({ inputText, handle }: CachedResponse): LooseObject[] {
  const input: unknown = JSON.parse(inputText)
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : Array.isArray(input) ? input : []
  return items.filter(isObject).map((item, index) => {
    const type = item['type'] ?? 'message'
    const { content } = item
    const part = item['role'] === 'assistant' ? 'output_text' : 'input_text'
    return {
      id: `in_${responseId(handle).slice('resp_'.length)}${index}`,
      ...item,
      type,
      ...(type === 'message' && typeof content === 'string' ? { content: [{ type: part, text: content }] } : {}),
    }
  })
}

function shape(field: string, expected: string): PaddockError {
  return new PaddockError('BODY_INVALID_SHAPE', `\`${field}\` must be ${expected}.`, { data: { field } })
}

function isObject(value: unknown): value is LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
