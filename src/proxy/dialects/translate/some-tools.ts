import type { CanonicalRequest } from './canonical.ts'
import { refused } from './read.ts'

/**
 * The choice of a client that lets the model call only some of the tools that it offers: engines know one tool, or all of
 * them. Throws `BODY_INVALID_SHAPE` for anything between.
 */
export function someOf(
  names: readonly string[],
  o: { readonly all: readonly string[]; readonly demanded: boolean; readonly field: string },
): CanonicalRequest['toolChoice'] {
  const [only, ...more] = names
  if (only !== undefined && more.length === 0 && o.demanded) return { name: only }
  if (o.all.every((name) => names.includes(name))) return o.demanded ? 'required' : 'auto'
  throw refused(o.field, 'a choice among some of the tools is not served', 'Offer the tools that may be called alone.')
}
