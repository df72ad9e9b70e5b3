import type { ReplyHead } from './reply-head.ts'

/** Kinds of heads that an engine's answers have: whole, streamed, refused. */
const mostHeads = 4
const longestHead = 1024
/** As `readReplyHead` has it. */
const mostDigits = 15

const dateField = /(\r\ndate:)[^\r]*/i
const lengthField = /(\r\ncontent-length:[\t ]*)\d+/i

/** A head that was read, with the empty line that ends it, and what of it changes from answer to answer. */
interface KnownHead {
  readonly text: string
  readonly read: ReplyHead
  readonly date: Bounds
  readonly length: Bounds
}

interface Bounds {
  readonly start: number
  readonly end: number
}

const nowhere: Bounds = { start: -1, end: -1 }

/**
 * The heads that were read last: an engine's next one differs from them in its date and in the length of the body alone, and
 * needs no lines and fields of its own then. What is found here would have been read as the same.
 */
export class KnownHeads {
  /** Behind the head that was found last. */
  end = 0
  private readonly heads: KnownHead[] = []
  private oldest = 0
  /** What the head that was looked at last says of its body. */
  private bodyLength = 0

  /** The head that the bytes `[0, size)` begin with; null where it is not known, or not complete. */
  find(bytes: Buffer, size: number): ReplyHead | null {
    for (let i = 0; i < this.heads.length; i += 1) {
      const known = this.heads[i]
      if (known === undefined || !this.begins(known, bytes, size)) continue
      const { read } = known
      if (read.frame.kind !== 'length') return read
      const { status, headers, keepMs } = read
      return { status, headers, frame: { kind: 'length', length: this.bodyLength }, keepMs }
    }
    return null
  }

  /** `text` was read without its last empty line. */
  keep(text: string, read: ReplyHead): void {
    if (text.length > longestHead) return
    const length = read.frame.kind === 'length' ? valueOf(lengthField, text) : nowhere
    const known = { text: `${text}\r\n\r\n`, read, date: valueOf(dateField, text), length }
    this.heads[this.oldest] = known
    this.oldest = (this.oldest + 1) % mostHeads
  }

  /** Where they do, `end` and `bodyLength` say what was found. */
  private begins({ text, date, length }: KnownHead, bytes: Buffer, size: number): boolean {
    let at = 0
    for (let i = 0; i < text.length; i += 1, at += 1) {
      if (i === date.start) {
        const end = at + date.end - date.start
        while (at < end && isOfValue(bytes[at])) at += 1
        if (at < end) return false
        i = date.end
      } else if (i === length.start) {
        at = this.number(bytes, at)
        i = length.end
      }
      if (at >= size || bytes[at] !== text.charCodeAt(i)) return false
    }
    this.end = at
    return true
  }

  /** Behind the number that begins at `at`, -1 where none does. */
  private number(bytes: Buffer, at: number): number {
    let i = at
    let value = 0
    for (let byte = bytes[i] ?? 0; i - at < mostDigits && byte >= 0x30 && byte <= 0x39; byte = bytes[i] ?? 0) {
      value = value * 10 + byte - 0x30
      i += 1
    }
    this.bodyLength = value
    return i === at ? -1 : i
  }
}

/** A byte that may stand in the value of a field. */
function isOfValue(byte: number | undefined): boolean {
  return byte !== undefined && (byte >= 0x20 ? byte !== 0x7f : byte === 0x09)
}

/** Where the value of the field lies; `field` has what stands before it as its first group. */
function valueOf(field: RegExp, text: string): Bounds {
  const found = field.exec(text)
  if (found === null) return nowhere
  const start = found.index + (found[1]?.length ?? 0)
  return { start, end: found.index + found[0].length }
}
