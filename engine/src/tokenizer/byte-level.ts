/**
 * The byte alphabet of byte-level BPE: 256 printable characters, one for each byte (GPT-2's table, which the
 * `ByteLevel` pre-tokeniser of Hugging Face tokenizers uses). Index is the byte, value the character.
 */
export function byteToUnicode(): string[] {
  const table: string[] = []
  let next = 256
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255)
    table.push(String.fromCodePoint(printable ? byte : next++))
  }
  return table
}

/** The reverse of `byteToUnicode`: character -> byte. */
export function unicodeToByte(): Map<string, number> {
  return new Map(byteToUnicode().map((char, byte) => [char, byte]))
}
