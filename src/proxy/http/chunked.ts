/**
 * A chunk of a chunked body (RFC 9112 §7.1) that holds bytes `[start, end)`. Null where there are none: a chunk without
 * bytes would end the body.
 */
export function chunkOf(bytes: Buffer, start: number, end: number): Buffer | null {
  const size = end - start
  if (size === 0) return null
  let digits = 1
  while (size >= 16 ** digits) digits += 1
  const chunk = Buffer.allocUnsafe(digits + size + 4)
  // Digit by digit: as text the length would be a string and a call into native code.
  for (let i = digits - 1, left = size; i >= 0; i -= 1, left = Math.floor(left / 16)) chunk[i] = hex[left % 16] ?? 0
  lineEnd(chunk, digits)
  bytes.copy(chunk, digits + 2, start, end)
  lineEnd(chunk, digits + 2 + size)
  return chunk
}

const hex = Buffer.from('0123456789abcdef')

function lineEnd(chunk: Buffer, at: number): void {
  chunk[at] = 0x0d
  chunk[at + 1] = 0x0a
}
