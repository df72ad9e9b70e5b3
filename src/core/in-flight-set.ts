/**
 * Those that are here right now, who come and go all the time. Like a `Set`, without its hidden cost: a `Set` makes itself
 * anew every few dozen changes, and the tables that it leaves behind point to each other and to whoever was there. Once one
 * of them is old, the collector of young objects keeps all that came after it, long dead or not.
 */
export class InFlightSet<T> implements Iterable<T> {
  private readonly members: T[] = []

  get size(): number {
    return this.members.length
  }

  /** Not asked for one that is here already. */
  add(member: T): void {
    this.members.push(member)
  }

  has(member: T): boolean {
    return this.members.includes(member)
  }

  /** True where it was here. The others may change places. */
  delete(member: T): boolean {
    const { members } = this
    const at = members.indexOf(member)
    if (at === -1) return false
    const last = members.pop()
    if (last !== undefined && at < members.length) members[at] = last
    return true
  }

  /** Those who are here now, whoever comes and goes meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.members].values()
  }
}
