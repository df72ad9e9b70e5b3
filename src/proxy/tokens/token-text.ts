/** What the tokens of an answer spell, in as little as holds it: an answer is held as long as its session. */
export interface TokenText {
  /** The tokens spell the content, and `rest` behind it; else `rest` is all that they spell. */
  readonly behindContent: boolean
  readonly rest: string
  /** Of each token the length of its text as one UTF-16 unit: nothing holds them in less. */
  readonly lengths: string
}

/** The text of these tokens, of an answer with this content. Null where a token is longer than any vocabulary's. */
export function tokenText(texts: readonly string[], content: string | null): TokenText | null {
  const lengths = lengthsOf(texts)
  if (lengths === null) return null
  const inContent = content === null ? 0 : tokensOf(content, texts)
  return { behindContent: inContent > 0, rest: joined(texts, inContent), lengths }
}

/** All that the tokens of an answer with this content spell. */
export function spelled({ behindContent, rest }: TokenText, content: string | null): string {
  return behindContent ? `${content ?? ''}${rest}` : rest
}

/** How many tokens spell the content, from the first on; 0 where none do. */
function tokensOf(content: string, texts: readonly string[]): number {
  let at = 0
  for (let count = 0; count < texts.length; count += 1) {
    if (at === content.length) return count
    const text = texts[count] ?? ''
    if (!content.startsWith(text, at)) return 0
    at += text.length
  }
  return at === content.length ? texts.length : 0
}

function joined(texts: readonly string[], from: number): string {
  if (from === 0) return texts.join('')
  let text = ''
  for (let place = from; place < texts.length; place += 1) text += texts[place] ?? ''
  return text
}

/** Where lengths are put together: what is kept of them is a copy. */
let units = Buffer.allocUnsafeSlow(4096)

function lengthsOf(texts: readonly string[]): string | null {
  if (units.length < 2 * texts.length) units = Buffer.allocUnsafeSlow(4 * texts.length)
  let longest = 0
  for (let place = 0; place < texts.length; place += 1) {
    const length = texts[place]?.length ?? 0
    if (length > longest) longest = length
    units[place] = length
  }
  if (longest <= 0xff) return units.toString('latin1', 0, texts.length)
  if (longest > 0xffff) return null
  for (let place = 0; place < texts.length; place += 1) units.writeUInt16LE(texts[place]?.length ?? 0, 2 * place)
  return units.toString('utf16le', 0, 2 * texts.length)
}
