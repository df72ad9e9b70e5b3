import type { ReferredNode } from './refs.ts'

/** What a target came to: one node, or what to tell the model. */
export type FoundTarget =
  | { readonly ok: true; readonly node: ReferredNode }
  | { readonly ok: false; readonly error: string }

const segment = /^(?:([A-Za-z]+)\s*)?"((?:[^"\\]|\\.)*)"(?:\s*#(\d+))?$/

/**
 * Finds the node that a target means: a ref of a snapshot (`e12`), or a role and a name (`button "Save"`), the name as a
 * whole or, where none fits, as a part; `#2` takes the second of several, and `row "Ada" > button "Edit"` looks inside
 * another. Several that fit, and none, are told with the fix.
 */
export function findTarget(target: string, nodes: readonly ReferredNode[]): FoundTarget {
  const trimmed = target.trim()
  if (/^e\d+$/.test(trimmed)) {
    const node = nodes.find(({ ref }) => ref === trimmed)
    if (node !== undefined) return { ok: true, node }
    return wrong(`There is no element ${trimmed} on the page now. Take a new snapshot and use a ref of it.`)
  }
  let within: ReferredNode | null = null
  for (const part of trimmed.split(/\s+>\s+/)) {
    const found = findPart(part, nodes, within)
    if (!found.ok) return found
    within = found.node
  }
  return within === null ? wrong(usage(target)) : { ok: true, node: within }
}

function findPart(part: string, nodes: readonly ReferredNode[], within: ReferredNode | null): FoundTarget {
  const match = segment.exec(part)
  if (match === null) return wrong(usage(part))
  const [, role, quoted = '', nth] = match
  const name = quoted.replaceAll(/\\(.)/g, '$1')
  const candidates = nodes.filter(
    (node) =>
      node.ref !== null &&
      (role === undefined || node.role.toLowerCase() === role.toLowerCase()) &&
      (within === null || node.above.some(({ ref }) => ref === within.ref)),
  )
  const exact = candidates.filter((node) => node.name === name)
  const fitting = exact.length > 0 ? exact : candidates.filter((node) => node.name.includes(name))
  const place = within === null ? 'on the page' : `in ${within.role} ${JSON.stringify(within.name)}`
  if (nth !== undefined) {
    const node = fitting[Number(nth) - 1]
    if (node !== undefined) return { ok: true, node }
    return wrong(`There are only ${fitting.length} of ${part.replace(/\s*#\d+$/, '')} ${place}.`)
  }
  const [node, ...more] = fitting
  if (node === undefined) {
    return wrong(`There is no ${part} ${place}. Take a snapshot, or use browser_find, and use a ref of it.`)
  }
  if (more.length > 0) {
    const refs = fitting.slice(0, 8).map(({ ref }) => ref)
    return wrong(`${fitting.length} elements are ${part} ${place}: ${refs.join(', ')}. Use a ref, or add #1, #2, ….`)
  }
  return { ok: true, node }
}

function usage(target: string): string {
  return `${JSON.stringify(target.slice(0, 80))} is no target. Use a ref such as e12, or a role and a name such as button "Save".`
}

function wrong(error: string): FoundTarget {
  return { ok: false, error }
}
