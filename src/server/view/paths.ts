import { z } from 'zod'
import { isId } from '../../core/index.ts'
import { parse } from '../parse.ts'

/** An id in a path or a query. */
export const oneId = z.string().refine(isId, 'not an id')

const ids = z.object({ id: oneId })

/** The id in a path. Throws `BODY_INVALID_SHAPE`. */
export function idOf(parameters: unknown): string {
  return parse(ids, parameters, 'path').id
}
