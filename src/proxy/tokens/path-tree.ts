import type { Id } from '../../core/index.ts'
import type { Segment } from '../../trajectory/index.ts'

/** A place in the tree: behind the first `offset` tokens of a segment; null: before everything. */
export type Place = { readonly segment: Segment; readonly offset: number } | null

/** Where a prompt lies in the tree. */
export interface PromptPlace {
  readonly at: Place
  /** Tokens of the prompt that the tree holds already. */
  readonly matched: number
  /** Sampled segments that the prompt runs through to their end. */
  readonly through: readonly Segment[]
  /** Equal sampled segments stood side by side and nothing told which one the prompt continues. */
  readonly ambiguous: boolean
}

/**
 * The segments of one session by place, for longest-prefix walks over token ids. Segments are never changed: a fork
 * hangs at (segment, offset). Sampled segments of equal content stay apart; which of them a prompt continues is
 * decided by what the conversation says, never by content.
 */
export class PathTree {
  private readonly roots: Segment[] = []
  /** By `<parent>/<offset>`. */
  private readonly children = new Map<string, Segment[]>()
  private readonly byId = new Map<Id, Segment>()

  /** Tokens that are held. */
  get size(): number {
    let size = 0
    for (const segment of this.byId.values()) size += segment.tokens.length
    return size
  }

  add(segment: Segment): void {
    this.byId.set(segment.id, segment)
    if (segment.parent === null) this.roots.push(segment)
    else {
      const key = placeKey(segment.parent.segmentId, segment.parent.offset)
      const siblings = this.children.get(key)
      if (siblings === undefined) this.children.set(key, [segment])
      else siblings.push(segment)
    }
  }

  /**
   * Longest walk along `ids`; `preferred` are the sampled segments that the conversation names. Segments that do not fit
   * are passed by, whatever their ids.
   */
  place(ids: Int32Array, preferred: ReadonlySet<Id>, fits: (segment: Segment) => boolean = () => true): PromptPlace {
    const named = this.withAncestors(preferred)
    let at: Place = null
    let matched = 0
    const through: Segment[] = []
    for (;;) {
      if (matched === ids.length) return { at, matched, through, ambiguous: false }
      const options = this.continuations(at)
        .filter(fits)
        .map((segment) => ({ segment, length: commonPrefix(segment.tokens, ids, matched) }))
        .filter(({ length }) => length > 0)
      const best = choose(options, named)
      if (best === null) return { at, matched, through, ambiguous: false }
      if (best === 'ambiguous') return { at, matched, through, ambiguous: true }
      matched += best.length
      at = { segment: best.segment, offset: best.length }
      if (best.length === best.segment.tokens.length && best.segment.origin === 'sampled') through.push(best.segment)
    }
  }

  /** All ids from the root to the end of a segment. */
  pathIds(segment: Segment): Int32Array {
    const parts: Int32Array[] = []
    let offset = segment.tokens.length
    for (let node: Segment | undefined = segment; node !== undefined;) {
      parts.unshift(node.tokens.subarray(0, offset))
      offset = node.parent?.offset ?? 0
      node = node.parent === null ? undefined : this.byId.get(node.parent.segmentId)
    }
    const all = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0))
    let at = 0
    for (const part of parts) {
      all.set(part, at)
      at += part.length
    }
    return all
  }

  /** The segments of a path, root first, itself last. */
  ancestors(segment: Segment): readonly Segment[] {
    const path: Segment[] = []
    for (let node: Segment | undefined = segment; node !== undefined;) {
      path.unshift(node)
      node = node.parent === null ? undefined : this.byId.get(node.parent.segmentId)
    }
    return path
  }

  /**
   * The first sampled segment on a path that ends behind a position, and where it starts; null behind the last one. What
   * a template changes just before an answer belongs to that answer.
   */
  sampledAt(segment: Segment, position: number): { readonly segment: Segment; readonly start: number } | null {
    const path = this.ancestors(segment)
    let start = 0
    for (const [index, node] of path.entries()) {
      const end = start + (path[index + 1]?.parent?.offset ?? node.tokens.length)
      if (node.origin === 'sampled' && end > position) return { segment: node, start }
      start = end
    }
    return null
  }

  /** Sampled tokens on the path of a segment that lie at or behind a position. */
  sampledBehind(segment: Segment, position: number): number {
    let end = this.pathIds(segment).length
    let count = 0
    let offset = segment.tokens.length
    for (let node: Segment | undefined = segment; node !== undefined && end > position;) {
      if (node.origin === 'sampled') count += end - Math.max(position, end - offset)
      end -= offset
      offset = node.parent?.offset ?? 0
      node = node.parent === null ? undefined : this.byId.get(node.parent.segmentId)
    }
    return count
  }

  private withAncestors(ids: ReadonlySet<Id>): ReadonlySet<Id> {
    const all = new Set<Id>()
    for (const id of ids) {
      for (let node = this.byId.get(id); node !== undefined && !all.has(node.id);) {
        all.add(node.id)
        node = node.parent === null ? undefined : this.byId.get(node.parent.segmentId)
      }
    }
    return all
  }

  private continuations(at: Place): readonly Segment[] {
    if (at === null) return this.roots
    return this.children.get(placeKey(at.segment.id, at.offset)) ?? []
  }
}

function placeKey(segmentId: Id, offset: number): string {
  return `${segmentId}/${offset}`
}

type Option = { readonly segment: Segment; readonly length: number }

function choose(options: readonly Option[], preferred: ReadonlySet<Id>): Option | 'ambiguous' | null {
  const [named, second] = options.filter(
    ({ segment, length }) => preferred.has(segment.id) && length === segment.tokens.length,
  )
  if (named !== undefined && second === undefined) return named
  let best: Option | null = null
  for (const option of options) if (best === null || option.length > best.length) best = option
  if (best === null) return null
  const longest = best.length
  const equal = options.filter(({ length }) => length === longest)
  if (equal.length === 1) return best
  // A copy in a prompt segment is nobody's sample: it can stand for all of them.
  const copy = equal.find(({ segment }) => segment.origin !== 'sampled')
  if (copy !== undefined) return copy
  return 'ambiguous'
}

/** How many ids are equal from `at` on. */
function commonPrefix(tokens: Int32Array, ids: Int32Array, at: number): number {
  const end = Math.min(tokens.length, ids.length - at)
  let length = 0
  while (length < end && tokens[length] === ids[at + length]) length += 1
  return length
}
