/**
 * Numbers words in the order in which they are first seen. The word is looked up where it stands in its text, so that
 * the hundreds of millions of words of a corpus never become strings of their own.
 */
export class WordTable {
  #size = 0
  /** Open addressing: word number + 1, 0 where free. */
  #slots = new Uint32Array(1 << 13)
  #hashes = new Int32Array(1 << 12)
  /** Word `n` is `#letters[#starts[n] … #starts[n + 1])`. */
  #starts = new Uint32Array((1 << 12) + 1)
  #letters = new Uint16Array(1 << 14)

  get size(): number {
    return this.#size
  }

  /** The number of `text[start … end)`; equal to the former {@link size} when the word is new. */
  numberOf(text: string, start: number, end: number): number {
    let hash = 0x811c9dc5 | 0
    for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
    // FNV-1a leaves its high bits better mixed than its low ones.
    hash ^= hash >>> 15
    const mask = this.#slots.length - 1
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#slots[slot] ?? 0
      if (entry === 0) return this.#add(text, start, end, hash, slot)
      if (this.#hashes[entry - 1] === hash && this.#holds(entry - 1, text, start, end)) return entry - 1
    }
  }

  #holds(word: number, text: string, start: number, end: number): boolean {
    const first = this.#starts[word] ?? 0
    if ((this.#starts[word + 1] ?? 0) - first !== end - start) return false
    for (let at = start; at < end; at += 1) {
      if (this.#letters[first + at - start] !== text.charCodeAt(at)) return false
    }
    return true
  }

  #add(text: string, start: number, end: number, hash: number, slot: number): number {
    const word = this.#size
    const first = this.#starts[word] ?? 0
    const last = first + end - start
    while (last > this.#letters.length) this.#letters = grown(this.#letters, new Uint16Array(this.#letters.length * 2))
    for (let at = start; at < end; at += 1) this.#letters[first + at - start] = text.charCodeAt(at)
    this.#slots[slot] = word + 1
    this.#hashes[word] = hash
    this.#starts[word + 1] = last
    this.#size += 1
    if (this.#size === this.#hashes.length) this.#enlarge()
    return word
  }

  /** Keeps the table half empty. */
  #enlarge(): void {
    this.#hashes = grown(this.#hashes, new Int32Array(this.#size * 2))
    this.#starts = grown(this.#starts, new Uint32Array(this.#size * 2 + 1))
    this.#slots = new Uint32Array(this.#slots.length * 2)
    const mask = this.#slots.length - 1
    for (let word = 0; word < this.#size; word += 1) {
      let slot = (this.#hashes[word] ?? 0) & mask
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
      this.#slots[slot] = word + 1
    }
  }
}

function grown<T extends { set(from: T): void }>(from: T, to: T): T {
  to.set(from)
  return to
}
