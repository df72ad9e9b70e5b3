import { readFileSync } from 'node:fs'
import { Tokenizer } from 'tokenizers'
import { unicodeToByte } from './byte-level.ts'

interface TokenizerFile {
  readonly added_tokens: readonly { readonly id: number; readonly content: string; readonly special: boolean }[]
  readonly model: { readonly vocab: Readonly<Record<string, number>> }
}

const NOTHING = new Uint8Array(0)

/** Characters of encoded pieces that are kept: a conversation brings the same turns back with every call. */
const CACHE_CHARS = 16_000_000

/**
 * A byte-level BPE vocabulary: the Rust library encodes, decoding is ours, because a stream needs the bytes of one
 * token at a time. Token ids are stable for the life of a vocabulary file.
 */
export class Vocabulary {
  readonly name: string
  readonly size: number
  /** Ids that plain text hides (`skip_special_tokens`). */
  readonly specialIds: ReadonlySet<number>
  readonly #rust: Tokenizer
  readonly #bytes: readonly Uint8Array[]
  readonly #added: ReadonlyMap<string, number>
  readonly #byBytes = new Map<string, number>()
  readonly #addedPattern: RegExp
  readonly #encoded = new Map<string, Int32Array>()
  #encodedChars = 0

  constructor(path: string) {
    const text = readFileSync(path, 'utf8')
    // The file is our own product (scripts/train-vocab.ts); its shape is checked by the round-trip tests.
    const file = JSON.parse(text) as TokenizerFile
    this.name = path.replace(/^.*\//, '').replace(/\.json$/, '')
    this.#rust = Tokenizer.fromString(text)
    const reverse = unicodeToByte()
    const bytes: Uint8Array[] = []
    for (const [token, id] of Object.entries(file.model.vocab)) {
      bytes[id] = Uint8Array.from(Array.from(token, (char) => reverse.get(char) ?? 0))
      this.#byBytes.set(Buffer.from(bytes[id]).toString('latin1'), id)
    }
    for (const added of file.added_tokens) bytes[added.id] = Buffer.from(added.content, 'utf8')
    this.#bytes = bytes
    this.#added = new Map(file.added_tokens.map((added) => [added.content, added.id]))
    const names = file.added_tokens.map((added) => added.content.replaceAll(/[|[\]/<>]/g, String.raw`\$&`))
    this.#addedPattern = new RegExp(`(${names.join('|')})`)
    this.specialIds = new Set(file.added_tokens.filter((added) => added.special).map((added) => added.id))
    this.size = bytes.length
  }

  /**
   * The ids of `text`. Added tokens written out in it become their single ids, as Hugging Face tokenizers do; they cut
   * the text before BPE, so the pieces between them can be encoded, and remembered, on their own.
   */
  async encode(text: string): Promise<Int32Array> {
    const pieces = await Promise.all(text.split(this.#addedPattern).map((piece) => this.#encodePiece(piece)))
    const only = pieces.length === 1 ? pieces[0] : undefined
    if (only !== undefined) return only
    const ids = new Int32Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
    let at = 0
    for (const piece of pieces) {
      ids.set(piece, at)
      at += piece.length
    }
    return ids
  }

  async #encodePiece(piece: string): Promise<Int32Array> {
    if (piece === '') return new Int32Array(0)
    const known = this.#encoded.get(piece)
    if (known !== undefined) return known
    const added = this.#added.get(piece)
    const ids = added === undefined ? await this.#encodeText(piece) : Int32Array.of(added)
    if (this.#encodedChars + piece.length > CACHE_CHARS) {
      this.#encoded.clear()
      this.#encodedChars = 0
    }
    this.#encoded.set(piece, ids)
    this.#encodedChars += piece.length
    return ids
  }

  async #encodeText(text: string): Promise<Int32Array> {
    const encoding = await this.#rust.encode(text, null, { addSpecialTokens: false })
    return Int32Array.from(encoding.getIds())
  }

  /** The raw bytes of one token; empty for an id outside the vocabulary. A token may end inside a character. */
  bytesOf(id: number): Uint8Array {
    return this.#bytes[id] ?? NOTHING
  }

  /** Text of a run of ids; bytes that are no UTF-8 show as U+FFFD. */
  decode(ids: Iterable<number>, options: { skipSpecial: boolean } = { skipSpecial: false }): string {
    const shown: Uint8Array[] = []
    let size = 0
    for (const id of ids) {
      if (options.skipSpecial && this.specialIds.has(id)) continue
      const bytes = this.bytesOf(id)
      shown.push(bytes)
      size += bytes.length
    }
    const text = Buffer.allocUnsafe(size)
    let at = 0
    // Tokens are a few bytes long: copying by hand beats a call per token.
    for (const bytes of shown) for (const byte of bytes) text[at++] = byte
    return text.toString('utf8')
  }

  /** Two tokens with the bytes of `id`, shortest first half first; undefined for single bytes and added tokens. */
  splitOf(id: number): [number, number] | undefined {
    const bytes = Buffer.from(this.bytesOf(id)).toString('latin1')
    if (this.#byBytes.get(bytes) !== id) return undefined
    for (let cut = 1; cut < bytes.length; cut++) {
      const left = this.#byBytes.get(bytes.slice(0, cut))
      const right = this.#byBytes.get(bytes.slice(cut))
      if (left !== undefined && right !== undefined) return [left, right]
    }
    return undefined
  }

  /** The id of an added token such as `<|im_end|>`. Throws when the vocabulary has none of that name. */
  idOf(added: string): number {
    const id = this.#added.get(added)
    if (id === undefined) throw new Error(`vocabulary ${this.name} has no added token ${added}`)
    return id
  }
}
