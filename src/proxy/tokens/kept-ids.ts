/** No page is larger, in ids, but for ids that need one of their own. */
const largestPage = 4096
const smallestPage = 256

/**
 * Ids that stay as long as a session, packed into pages: an array of its own costs each short answer several times what its
 * ids do.
 */
export class KeptIds {
  private page = new Int32Array(0)
  private used = 0

  /** A copy of the ids from `from` on. Nobody may write to it. */
  keep(ids: readonly number[] | Int32Array, from = 0): Int32Array {
    const length = ids.length - from
    const start = this.room(length)
    const { page } = this
    for (let at = 0; at < length; at += 1) page[start + at] = ids[from + at] ?? 0
    this.used = start + length
    return page.subarray(start, this.used)
  }

  /** Where so many ids fit into the page. */
  private room(length: number): number {
    if (this.used + length <= this.page.length) return this.used
    const next = Math.min(largestPage, Math.max(smallestPage, 2 * this.page.length))
    this.page = new Int32Array(Math.max(length, next))
    return 0
  }
}
