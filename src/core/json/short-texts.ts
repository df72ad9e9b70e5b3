const places = 2048
const longest = 24

/**
 * Short texts that were read before, where few different ones come again and again: keys, tokens. A text that is found needs
 * no call into native code and no memory of its own.
 */
export class ShortTexts {
  private readonly known: string[] = Array.from({ length: places }, () => '')

  /** The text of the bytes `[start, end)`; null where it is too long or not ASCII. */
  find(bytes: Uint8Array, start: number, end: number): string | null {
    if (end - start > longest) return null
    let sum = end - start
    for (let i = start; i < end; i += 1) {
      const byte = bytes[i] ?? 0
      if (byte >= 0x80) return null
      sum = (Math.imul(sum, 31) + byte) | 0
    }
    const place = (sum ^ (sum >>> 11)) & (places - 1)
    const known = this.known[place] ?? ''
    if (isAt(known, bytes, start, end)) return known
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1')
    this.known[place] = text
    return text
  }
}

function isAt(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) !== bytes[start + i]) return false
  return true
}
