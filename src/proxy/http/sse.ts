/** One event of a stream: its bytes with the terminating blank line, and where the `data:` payload lies in them. */
export class SseEvent {
  readonly bytes: Buffer
  readonly start: number
  /** -1 for comments and everything else without data. */
  readonly end: number

  constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes
    this.start = start
    this.end = end
  }

  /** The payload by itself; null where there is none. */
  get payload(): Buffer | null {
    return this.end === -1 ? null : this.bytes.subarray(this.start, this.end)
  }
}

/**
 * Cuts a byte stream into server-sent events (WHATWG HTML §9.2.6) without copying where an event lies in one chunk.
 * Understands `\n\n` and `\r\n\r\n` ends.
 */
export class SseSplitter {
  private rest: Buffer | null = null

  /** The events that are complete with this chunk. */
  push(chunk: Buffer): SseEvent[] {
    const data = this.rest === null ? chunk : Buffer.concat([this.rest, chunk])
    let events: SseEvent[] = []
    let from = 0
    while (from < data.length) {
      const line = data.indexOf(0x0a, from)
      const end = eventEnd(data, line)
      if (end === -1) break
      // Most chunks hold one event: it is the chunk, and needs no array with room for more.
      const event = toEvent(from === 0 && end === data.length ? data : data.subarray(from, end), line - from)
      if (from === 0) events = [event]
      else events.push(event)
      from = end
    }
    this.rest = from === data.length ? null : data.subarray(from)
    return events
  }

  /** What came after the last complete event; an engine that ends a stream properly leaves nothing. */
  remainder(): Buffer | null {
    return this.rest
  }
}

/** Behind the event whose first line ends at `line`. */
function eventEnd(data: Buffer, line: number): number {
  let newline = line
  while (newline !== -1) {
    if (data[newline + 1] === 0x0a) return newline + 2
    if (data[newline + 1] === 0x0d && data[newline + 2] === 0x0a) return newline + 3
    newline = data.indexOf(0x0a, newline + 1)
  }
  return -1
}

/** `line`: where its first line ends. */
function toEvent(bytes: Buffer, line: number): SseEvent {
  // 'data:' then an optional space, and nothing else: the form in which engines send nearly all of them.
  if (bytes[0] !== 0x64 || bytes[1] !== 0x61 || bytes[2] !== 0x74 || bytes[3] !== 0x61 || bytes[4] !== 0x3a) {
    return ofLines(bytes)
  }
  const start = bytes[5] === 0x20 ? 6 : 5
  let end = bytes.length
  while (end > start && (bytes[end - 1] === 0x0a || bytes[end - 1] === 0x0d)) end -= 1
  return line < end ? ofLines(bytes) : new SseEvent(bytes, start, end)
}

/**
 * An event with other lines beside its data (a name, an id, a comment), or with several of data: told again as one line of
 * data. What ends a line stands between values of JSON only, where a blank says the same.
 */
function ofLines(bytes: Buffer): SseEvent {
  const data = bytes
    .toString('latin1')
    .replace(/^\xef\xbb\xbf/, '')
    .split(/\r\n|\n|\r/)
    .flatMap((line) => /^data(?:: ?(.*))?$/s.exec(line)?.[1] ?? [])
  if (data.length === 0) return new SseEvent(bytes, 0, -1)
  const told = Buffer.from(`data: ${data.join(' ')}\n\n`, 'latin1')
  return new SseEvent(told, 6, told.length - 2)
}
