/**
 * A chunk of a chunked body (RFC 9112 §7.1) that holds the parts one behind the other. Null where they are empty: a
 * chunk without bytes would end the body.
 */
export function chunkOf(parts: readonly Buffer[]): Buffer | null {
  let size = 0
  for (const part of parts) size += part.length
  if (size === 0) return null
  const length = size.toString(16)
  const chunk = Buffer.allocUnsafe(length.length + size + 4)
  let at = chunk.write(length, 0, 'latin1')
  at = chunk.writeUInt16BE(0x0d0a, at)
  for (const part of parts) {
    chunk.set(part, at)
    at += part.length
  }
  chunk.writeUInt16BE(0x0d0a, at)
  return chunk
}
