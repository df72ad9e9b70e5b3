import { readFileSync } from 'node:fs'
import { Tokenizer } from 'tokenizers'
import { unicodeToByte } from './byte-level.ts'

interface TokenizerFile {
  readonly added_tokens: readonly { readonly id: number; readonly content: string; readonly special: boolean }[]
  readonly model: { readonly vocab: Readonly<Record<string, number>> }
}

/** How long an encoded text is kept: candidate texts come back on every turn, prompts rarely do. */
const CACHE_TEXTS = 2048
const CACHE_TEXT_CHARS = 8192

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
  readonly #encoded = new Map<string, Int32Array>()

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
    this.specialIds = new Set(file.added_tokens.filter((added) => added.special).map((added) => added.id))
    this.size = bytes.length
  }

  /** The ids of `text`. Added tokens written out in it become their single ids, as Hugging Face tokenizers do. */
  async encode(text: string): Promise<Int32Array> {
    if (text === '') return new Int32Array(0)
    const known = this.#encoded.get(text)
    if (known !== undefined) return known
    const encoding = await this.#rust.encode(text, null, { addSpecialTokens: false })
    const ids = Int32Array.from(encoding.getIds())
    if (text.length <= CACHE_TEXT_CHARS) {
      if (this.#encoded.size >= CACHE_TEXTS) this.#encoded.clear()
      this.#encoded.set(text, ids)
    }
    return ids
  }

  /** The raw bytes of one token; empty for an id outside the vocabulary. A token may end inside a character. */
  bytesOf(id: number): Uint8Array {
    return this.#bytes[id] ?? new Uint8Array(0)
  }

  /** Text of a run of ids; bytes that are no UTF-8 show as U+FFFD. */
  decode(ids: Iterable<number>, options: { skipSpecial: boolean } = { skipSpecial: false }): string {
    const parts: Uint8Array[] = []
    for (const id of ids) if (!(options.skipSpecial && this.specialIds.has(id))) parts.push(this.bytesOf(id))
    return Buffer.concat(parts).toString('utf8')
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
