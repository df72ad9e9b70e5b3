import { z } from 'zod'
import { isId } from '../../core/index.ts'
import { parse } from '../parse.ts'

const ids = z.object({ id: z.string().refine(isId, 'not an id') })

/** The id in a path. Throws `BODY_INVALID_SHAPE`. */
export function idOf(parameters: unknown): string {
  return parse(ids, parameters, 'path').id
}
