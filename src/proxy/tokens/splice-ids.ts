/**
 * The arithmetic of a splice, on ids alone: where the echoed answer ends in a rendered prompt, and what stands behind
 * it. No tokenizer: terminators are learned from what templates and models write.
 */

/** How a template ends an assistant turn: a terminator token, then a fixed tail (Qwen: a newline). */
export interface Closing {
  /** Terminators that were seen, of the template and of sampled answers. Empty: the template writes none. */
  readonly terminators: ReadonlySet<number>
  readonly tail: Int32Array
}

/** What a template writes behind an echoed answer. */
export interface Behind {
  /** The terminator that the template wrote, null where it writes none. */
  readonly terminator: number | null
  /** Everything behind that terminator. */
  readonly rest: Int32Array
}

export function startsWith(ids: Int32Array, prefix: Int32Array): boolean {
  if (ids.length < prefix.length) return false
  for (let i = 0; i < prefix.length; i += 1) if (ids[i] !== prefix[i]) return false
  return true
}

/**
 * The closing of two prompts that differ only in the text of their last answer: what is common at their ends. Null
 * where they are not of that kind. Words that run into a closing without a special token would not be told apart from
 * it, so both texts must be single letters that no closing begins with.
 */
export function closingOf(one: Int32Array, other: Int32Array): Int32Array | null {
  if (one.length !== other.length) return null
  let differs = -1
  for (let i = one.length - 1; i >= 0; i -= 1) {
    if (one[i] === other[i]) continue
    if (differs === -1) differs = i
    else return null
  }
  return differs === -1 ? null : one.slice(differs + 1)
}

/** Position of the terminator where `ids` end with one and its tail, -1 where they do not. */
export function terminatorAt(ids: Int32Array, closing: Closing): number {
  const at = ids.length - closing.tail.length - 1
  const last = ids[at]
  if (last === undefined || !closing.terminators.has(last)) return -1
  return isTail(ids, at + 1, closing.tail) ? at : -1
}

/**
 * EOS-count splice: `upTo` renders the messages up to the echoed answer, `full` all of them. The n-th terminator of
 * `full` ends the answer where `upTo` has n of them, whatever else the template changed before it. `sure` where `full`
 * begins with `upTo`, so that nothing had to be counted on. Null where it cannot be found.
 */
export function behindByCount(
  full: Int32Array,
  upTo: Int32Array,
  closing: Closing,
): (Behind & { readonly sure: boolean }) | null {
  const end = terminatorAt(upTo, closing)
  const terminator = upTo[end]
  if (end === -1 || terminator === undefined) return null
  let left = 0
  for (const id of upTo) if (id === terminator) left += 1
  for (let i = 0; i < full.length; i += 1) {
    if (full[i] !== terminator) continue
    left -= 1
    if (left > 0) continue
    if (!isTail(full, i + 1, closing.tail)) return null
    return { terminator, rest: full.slice(i + 1), sure: startsWith(full, upTo) }
  }
  return null
}

/**
 * Dummy-context delta: `without` renders a short conversation that ends with the answer, `withRest` the same with the
 * new messages behind it. Null where the one does not begin with the other.
 */
export function behindByDelta(without: Int32Array, withRest: Int32Array, closing: Closing): Behind | null {
  if (!startsWith(withRest, without)) return null
  if (closing.terminators.size === 0) return { terminator: null, rest: withRest.slice(without.length) }
  const end = terminatorAt(without, closing)
  return end === -1 ? null : { terminator: without[end] ?? null, rest: withRest.slice(end + 1) }
}

/**
 * The recorded path with what the template writes behind it. `ended`: the path's last id is the terminator that the
 * model sampled; it stands in the place of the template's. Null where a template without terminators goes on with
 * another token than the one that ended the answer.
 */
export function joined(path: Int32Array, ended: boolean, behind: Behind): Int32Array | null {
  if (!ended) return concat(path, behind.terminator === null ? [] : [behind.terminator], behind.rest)
  if (behind.terminator !== null) return concat(path, [], behind.rest)
  // The token that ends an answer is the first of the next turn (GLM): it is there already.
  return behind.rest[0] === path.at(-1) ? concat(path, [], behind.rest.subarray(1)) : null
}

function concat(path: Int32Array, middle: readonly number[], rest: Int32Array): Int32Array {
  const all = new Int32Array(path.length + middle.length + rest.length)
  all.set(path)
  all.set(middle, path.length)
  all.set(rest, path.length + middle.length)
  return all
}

function isTail(ids: Int32Array, at: number, tail: Int32Array): boolean {
  if (at + tail.length > ids.length) return false
  for (let i = 0; i < tail.length; i += 1) if (ids[at + i] !== tail[i]) return false
  return true
}
