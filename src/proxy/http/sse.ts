/** One event of a stream: its bytes with the terminating blank line, and where the `data:` payload lies in them. */
export interface SseEvent {
  readonly bytes: Buffer
  /** Null for comments, events of several data lines and everything else that is passed on as it is. */
  readonly payload: Buffer | null
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
    const events: SseEvent[] = []
    let from = 0
    for (;;) {
      const end = eventEnd(data, from)
      if (end === -1) break
      events.push(toEvent(data.subarray(from, end)))
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

function eventEnd(data: Buffer, from: number): number {
  let at = from
  for (;;) {
    const newline = data.indexOf(0x0a, at)
    if (newline === -1) return -1
    if (data[newline + 1] === 0x0a) return newline + 2
    if (data[newline + 1] === 0x0d && data[newline + 2] === 0x0a) return newline + 3
    at = newline + 1
  }
}

function toEvent(bytes: Buffer): SseEvent {
  // 'data:' then an optional space (the only form that engines send).
  if (bytes[0] !== 0x64 || bytes[1] !== 0x61 || bytes[2] !== 0x74 || bytes[3] !== 0x61 || bytes[4] !== 0x3a) {
    return { bytes, payload: null }
  }
  const start = bytes[5] === 0x20 ? 6 : 5
  let end = bytes.length
  while (end > start && (bytes[end - 1] === 0x0a || bytes[end - 1] === 0x0d)) end -= 1
  const payload = bytes.subarray(start, end)
  return { bytes, payload: payload.includes(0x0a) ? null : payload }
}
