/**
 * The arithmetic of a splice, on ids alone: where the echoed answer ends in a rendered prompt, and what stands behind
 * it. No tokenizer: terminators are learned from what templates and models write.
 */

/** How a template ends an assistant turn: a terminator token, then a fixed tail (Qwen: a newline). */
export interface Closing {
  /** Terminators that were seen, of the template and of sampled answers. Empty: the template writes none. */
  readonly terminators: ReadonlySet<number>
  /** What stands behind a terminator whatever comes next. */
  readonly tail: Int32Array
  /**
   * What stands behind the terminator, or behind the answer where there is none, at the end of a render that was asked to
   * end with an answer: the tail, and for an engine that always opens a turn also the dummy turn that was put behind it.
   */
  readonly last: Int32Array
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

/**
 * Where the answer ends in a render that was asked to end with one: the position of its terminator, or behind its last
 * id where the template writes none. -1 where the render does not end as learned.
 */
export function answerEnd(ids: Int32Array, closing: Closing): number {
  const { terminators, last } = closing
  const at = ids.length - last.length - (terminators.size === 0 ? 0 : 1)
  if (at < 0 || !isTail(ids, ids.length - last.length, last)) return -1
  return terminators.size === 0 || terminators.has(ids[at] ?? -1) ? at : -1
}

/**
 * What `full` has behind the answer that ends `upTo`, a render that was asked to end with it. Null where `full` does not
 * begin with the same ids.
 */
export function behindPrefix(full: Int32Array, upTo: Int32Array, closing: Closing): Behind | null {
  const end = answerEnd(upTo, closing)
  if (end === -1) return null
  if (closing.terminators.size === 0) {
    return startsWith(full, upTo.subarray(0, end)) ? { terminator: null, rest: full.slice(end) } : null
  }
  if (!startsWith(full, upTo.subarray(0, end + 1)) || !isTail(full, end + 1, closing.tail)) return null
  return { terminator: upTo[end] ?? null, rest: full.slice(end + 1) }
}

/** Renders of a whole conversation with single letters for what stands last in an answer. */
export interface Lettered {
  readonly one: Int32Array
  readonly other: Int32Array
  /** Ids between the letter and the answer's terminator. */
  readonly end: number
}

/**
 * Letters in the answer's place: what both renders have behind them ends the answer and goes on. Null where no terminator
 * stands where it should, and where `full` does not end with what stands there from it on.
 */
export function behindLetter(full: Int32Array, { one, other, end }: Lettered, closing: Closing): Behind | null {
  const behind = closingOf(one, other)?.subarray(end) ?? null
  const [terminator] = behind ?? []
  if (behind === null || terminator === undefined || !closing.terminators.has(terminator)) return null
  if (!isTail(behind, 1, closing.tail) || !isTail(full, full.length - behind.length, behind)) return null
  return { terminator, rest: behind.slice(1) }
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

/** The ids with which both begin. */
export function commonStart(one: Int32Array, other: Int32Array): Int32Array {
  let length = 0
  while (length < one.length && length < other.length && one[length] === other[length]) length += 1
  return one.slice(0, length)
}

function concat(path: Int32Array, middle: readonly number[], rest: Int32Array): Int32Array {
  const all = new Int32Array(path.length + middle.length + rest.length)
  all.set(path)
  all.set(middle, path.length)
  all.set(rest, path.length + middle.length)
  return all
}

function isTail(ids: Int32Array, at: number, tail: Int32Array): boolean {
  if (at < 0 || at + tail.length > ids.length) return false
  for (let i = 0; i < tail.length; i += 1) if (ids[at + i] !== tail[i]) return false
  return true
}
