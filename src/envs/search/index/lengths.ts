/**
 * A passage's length in one byte, lossy beyond 24 words, as Lucene stores field lengths (org.apache.lucene.util.SmallFloat
 * `intToByte4` and `byte4ToInt`): four significant bits and a shift. Scores equal Lucene's only with the same loss.
 */
const free = 255 - toShifted(2 ** 31 - 1)

/** The byte that stands for a length. */
export function encodeLength(length: number): number {
  return length < free ? length : free + toShifted(length - free)
}

/** The length that a byte stands for. */
export function decodeLength(byte: number): number {
  return byte < free ? byte : free + fromShifted(byte - free)
}

function toShifted(value: number): number {
  const bits = 32 - Math.clz32(value)
  if (bits < 4) return value
  const shift = bits - 4
  return ((value >>> shift) & 7) | ((shift + 1) << 3)
}

function fromShifted(value: number): number {
  const shift = (value >>> 3) - 1
  const bits = value & 7
  return shift === -1 ? bits : (bits | 8) * 2 ** shift
}
