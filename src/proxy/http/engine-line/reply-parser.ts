import { ChunkedBody } from './chunked-body.ts'
import { KnownHeads } from './known-heads.ts'
import { MalformedReply, readReplyHead, type ReplyHead } from './reply-head.ts'

/** What a parser finds. */
export interface ReplyParts {
  head(head: ReplyHead): void
  /** Owned by the receiver. */
  data(bytes: Buffer): void
}

/** Of one answer, its 1xx forerunners included. */
const maxHeadBytes = 32 * 1024

const headEnd = Buffer.from('\r\n\r\n')
const knownHeads = new KnownHeads()

/**
 * One HTTP/1.1 answer from the bytes of a connection. Whatever could be read in two ways throws `MalformedReply`, and then
 * nothing of the answer may be believed any more.
 */
export class ReplyParser {
  /** The answer is complete. */
  done = false
  /** Bytes came behind the end of the answer: the connection is not to be used again. */
  overrun = false
  head: ReplyHead | null = null
  private readonly parts: ReplyParts
  /** Of a head that is not complete. */
  private rest: Buffer | null = null
  private headBytes = 0
  private left = 0
  private chunks: ChunkedBody | null = null

  constructor(parts: ReplyParts) {
    this.parts = parts
  }

  /** Reads `[0, size)` of the bytes, which are only looked at while this runs. */
  push(bytes: Buffer, size = bytes.length): void {
    if (this.head !== null) {
      this.readBody(bytes, 0, size)
      return
    }
    const known = this.rest === null && this.headBytes === 0 ? knownHeads.find(bytes, size) : null
    if (known !== null) {
      const { end } = knownHeads
      this.begin(known)
      this.readBody(bytes, end, size)
      return
    }
    const from = this.readHead(bytes.subarray(0, size))
    if (from !== null) this.readBody(from.bytes, from.at, from.bytes.length)
  }

  /** The engine said that nothing more comes. True where the answer is complete with that. */
  close(): boolean {
    if (this.head?.frame.kind === 'close') this.done = true
    return this.done
  }

  /** Where the body begins; null while the head is not complete. */
  private readHead(bytes: Buffer): { readonly bytes: Buffer; readonly at: number } | null {
    let data = this.rest === null ? bytes : Buffer.concat([this.rest, bytes])
    for (;;) {
      const end = data.indexOf(headEnd)
      const size = end === -1 ? data.length : end + headEnd.length
      if (this.headBytes + size > maxHeadBytes) throw new MalformedReply('the head is too large')
      if (end === -1) {
        // The connection's next read overwrites these bytes.
        this.rest = Buffer.from(data)
        return null
      }
      this.headBytes += size
      const text = data.toString('latin1', 0, end)
      const head = readReplyHead(text)
      if (head.status === 101) throw new MalformedReply('it changed the protocol unasked')
      if (head.status >= 200) {
        knownHeads.keep(text, head)
        this.rest = null
        this.begin(head)
        return { bytes: data, at: size }
      }
      data = data.subarray(size)
    }
  }

  private begin(head: ReplyHead): void {
    this.head = head
    if (head.frame.kind === 'length') this.left = head.frame.length
    if (head.frame.kind === 'chunked') this.chunks = new ChunkedBody()
    if (head.frame.kind === 'none' || (head.frame.kind === 'length' && this.left === 0)) this.done = true
    this.parts.head(head)
  }

  private readBody(bytes: Buffer, at: number, until: number): void {
    if (at === until) return
    if (this.done) {
      this.overrun = true
      return
    }
    if (this.chunks !== null) {
      const { data, end } = this.chunks.push(bytes, at, until)
      this.done = this.chunks.done
      this.overrun = end < until
      if (data.length > 0) this.parts.data(data)
      return
    }
    const end = this.head?.frame.kind === 'close' ? until : Math.min(until, at + this.left)
    if (this.head?.frame.kind === 'length') {
      this.left -= end - at
      this.done = this.left === 0
      this.overrun = end < until
    }
    const data = Buffer.allocUnsafe(end - at)
    bytes.copy(data, 0, at, end)
    this.parts.data(data)
  }
}
