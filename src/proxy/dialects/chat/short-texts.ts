const places = 2048
const longest = 24

/**
 * The texts of tokens that were read before: an answer is made of few different ones. A text that is found needs no call
 * into native code and no memory of its own, in answers that live as long as their session.
 */
export class ShortTexts {
  private readonly known: string[] = Array.from({ length: places }, () => '')

  /** The text of the bytes `[start, end)`; null where it is too long or not ASCII. */
  find(bytes: Buffer, start: number, end: number): string | null {
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
    const text = bytes.toString('latin1', start, end)
    this.known[place] = text
    return text
  }
}

function isAt(text: string, bytes: Buffer, start: number, end: number): boolean {
  if (text.length !== end - start) return false
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) !== bytes[start + i]) return false
  return true
}
