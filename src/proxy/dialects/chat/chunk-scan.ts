import { skipSpace, skipString, skipValue } from '../../../core/index.ts'

/** A range of bytes to leave out or (`nulled`) to replace by the literal null. */
export interface ByteEdit {
  readonly start: number
  readonly end: number
  readonly nulled: boolean
}

/**
 * One pass over the bytes of a chat completion chunk (or whole completion): what a client must not see, and what the
 * proxy must know before it writes. No value is built; only keys on the path root > choices[] > delta|message are read.
 */
export interface ChunkFacts {
  /** In order. */
  readonly edits: readonly ByteEdit[]
  /** Where the `prompt_token_ids` array lies. */
  readonly promptIds: { readonly start: number; readonly end: number } | null
  /** Some choice has a `finish_reason`: a client may act on it. */
  readonly finishes: boolean
  readonly hasToolCalls: boolean
  readonly hasError: boolean
  /** A chunk with usage and no choices: the one that `include_usage` adds. */
  readonly usageOnly: boolean
  /** Where the `message` values of a whole completion lie, and in which of its choices. */
  readonly messages: readonly { readonly choice: number; readonly start: number; readonly end: number }[]
}

/** What the client wants to see of the injected fields. */
export interface ChunkView {
  readonly wantsLogprobs: boolean
  readonly wantsUsage: boolean
}

const keys = {
  choices: Buffer.from('"choices"'),
  usage: Buffer.from('"usage"'),
  error: Buffer.from('"error"'),
  object: Buffer.from('"object"'),
  promptTokenIds: Buffer.from('"prompt_token_ids"'),
  tokenIds: Buffer.from('"token_ids"'),
  logprobs: Buffer.from('"logprobs"'),
  routedExperts: Buffer.from('"routed_experts"'),
  weightVersions: Buffer.from('"weight_versions"'),
  finishReason: Buffer.from('"finish_reason"'),
  delta: Buffer.from('"delta"'),
  message: Buffer.from('"message"'),
  toolCalls: Buffer.from('"tool_calls"'),
}

/** Throws `BODY_INVALID_JSON` where the engine's chunk is not JSON at the levels that are read. */
export function scanChunk(bytes: Buffer, view: ChunkView): ChunkFacts {
  return new ChunkScan(bytes, view).run()
}

const noMessages: ChunkFacts['messages'] = []

class ChunkScan implements ChunkFacts {
  readonly edits: ByteEdit[] = []
  promptIds: { start: number; end: number } | null = null
  finishes = false
  hasToolCalls = false
  hasError = false
  usageOnly = false
  messages: ChunkFacts['messages'] = noMessages
  private hasUsage = false
  private choiceCount = 0
  private readonly bytes: Buffer
  private readonly view: ChunkView

  constructor(bytes: Buffer, view: ChunkView) {
    this.bytes = bytes
    this.view = view
  }

  run(): ChunkFacts {
    this.object(skipSpace(this.bytes, 0), this.root)
    this.usageOnly = this.hasUsage && this.choiceCount === 0
    return this
  }

  /**
   * Walks an object. `visit` gets key and value bounds, and returns the end of the value (negative: cut the member).
   */
  private object(at: number, visit: (keyStart: number, keyEnd: number, value: number) => number): number {
    const { bytes } = this
    let i = skipSpace(bytes, at + 1)
    if (bytes[i] === 0x7d) return i + 1
    let keptEnd = -1
    for (;;) {
      const keyStart = i
      const keyEnd = skipString(bytes, i)
      const value = skipSpace(bytes, skipSpace(bytes, keyEnd) + 1)
      const result = visit(keyStart, keyEnd, value)
      const end = Math.abs(result)
      const after = skipSpace(bytes, end)
      const more = bytes[after] === 0x2c
      const next = more ? skipSpace(bytes, after + 1) : after
      if (result >= 0) keptEnd = end
      else if (keptEnd !== -1) {
        this.edits.push({ start: keptEnd, end, nulled: false })
        keptEnd = end
      } else this.edits.push({ start: keyStart, end: more ? next : end, nulled: false })
      if (!more) return skipSpace(bytes, end) + 1
      i = next
    }
  }

  private readonly root = (keyStart: number, keyEnd: number, value: number): number => {
    if (this.is(keyStart, keyEnd, keys.choices)) return this.choices(value)
    if (this.is(keyStart, keyEnd, keys.promptTokenIds)) {
      const end = this.idsEnd(value)
      if (this.bytes[value] === 0x5b) this.promptIds = { start: value, end }
      return -end
    }
    const end = skipValue(this.bytes, value)
    if (this.is(keyStart, keyEnd, keys.usage)) {
      this.hasUsage = this.bytes[value] === 0x7b
      return this.view.wantsUsage ? end : -end
    }
    if (this.is(keyStart, keyEnd, keys.error)) {
      // An object or a text; null, false and an empty text say that there is none.
      this.hasError ||= this.bytes[value] === 0x7b || (this.bytes[value] === 0x22 && end - value > 2)
    } else if (this.is(keyStart, keyEnd, keys.object)) this.hasError ||= this.is(value, end, keys.error)
    return end
  }

  private choices(at: number): number {
    const { bytes } = this
    if (bytes[at] !== 0x5b) return skipValue(bytes, at)
    let i = skipSpace(bytes, at + 1)
    while (bytes[i] !== 0x5d) {
      if (bytes[i] !== 0x7b) return skipValue(bytes, at)
      this.choiceCount += 1
      i = skipSpace(bytes, this.object(i, this.choice))
      if (bytes[i] === 0x2c) i = skipSpace(bytes, i + 1)
    }
    return i + 1
  }

  private readonly choice = (keyStart: number, keyEnd: number, value: number): number => {
    const { bytes } = this
    const whole = this.is(keyStart, keyEnd, keys.message)
    if (whole || this.is(keyStart, keyEnd, keys.delta)) {
      const end = bytes[value] === 0x7b ? this.object(value, this.message) : skipValue(bytes, value)
      if (whole) this.messages = [...this.messages, { choice: this.choiceCount - 1, start: value, end }]
      return end
    }
    if (this.is(keyStart, keyEnd, keys.tokenIds)) return -this.idsEnd(value)
    if (this.is(keyStart, keyEnd, keys.promptTokenIds)) return -this.idsEnd(value)
    const end = skipValue(bytes, value)
    const hidden = this.is(keyStart, keyEnd, keys.routedExperts) || this.is(keyStart, keyEnd, keys.weightVersions)
    if (hidden && bytes[value] !== 0x6e) return -end
    if (this.is(keyStart, keyEnd, keys.finishReason)) {
      if (bytes[value] === 0x22) this.finishes = true
    } else if (this.is(keyStart, keyEnd, keys.logprobs) && !this.view.wantsLogprobs && bytes[value] !== 0x6e) {
      this.edits.push({ start: value, end, nulled: true })
    }
    return end
  }

  private readonly message = (keyStart: number, keyEnd: number, value: number): number => {
    const end = skipValue(this.bytes, value)
    // `[` and not `[]`: vLLM sends an empty list on whole answers without calls.
    if (this.is(keyStart, keyEnd, keys.toolCalls) && this.bytes[value] === 0x5b && end - value > 2) {
      this.hasToolCalls = true
    }
    return end
  }

  /** A flat array of numbers ends at the first bracket; the native search matters for 100k ids. */
  private idsEnd(at: number): number {
    if (this.bytes[at] !== 0x5b) return skipValue(this.bytes, at)
    const close = this.bytes.indexOf(0x5d, at)
    return close === -1 ? skipValue(this.bytes, at) : close + 1
  }

  /** Whether the quoted text is this one. Byte by byte: a call into native code costs more than a short key. */
  private is(start: number, end: number, key: Buffer): boolean {
    if (end - start !== key.length) return false
    for (let i = key.length - 2; i > 0; i -= 1) if (this.bytes[start + i] !== key[i]) return false
    return true
  }
}

/** How many bytes there are with the edits done. */
export function editedSize(bytes: Buffer, edits: readonly ByteEdit[]): number {
  let size = bytes.length
  for (let i = 0; i < edits.length; i += 1) {
    const edit = edits[i]
    if (edit !== undefined) size += (edit.nulled ? nullBytes.length : 0) - (edit.end - edit.start)
  }
  return size
}

/** Copies the bytes, with the edits done, to `at` of `target`. */
export function copyEdited(bytes: Buffer, edits: readonly ByteEdit[], target: Buffer, at: number): void {
  let from = 0
  let used = at
  for (let i = 0; i < edits.length; i += 1) {
    const edit = edits[i]
    if (edit === undefined) continue
    used += bytes.copy(target, used, from, edit.start)
    if (edit.nulled) used += nullBytes.copy(target, used)
    from = edit.end
  }
  bytes.copy(target, used, from)
}

/** The bytes with the edits done; the same buffer when there are none. */
export function applyEdits(bytes: Buffer, edits: readonly ByteEdit[]): Buffer {
  if (edits.length === 0) return bytes
  const edited = Buffer.allocUnsafe(editedSize(bytes, edits))
  copyEdited(bytes, edits, edited, 0)
  return edited
}

const nullBytes = Buffer.from('null')

/** Where ids are read to before they are counted, unless they are very many. */
const scratch = new Int32Array(16 * 1024)

/**
 * Reads a flat JSON array of integers that ids can be from its bytes. Null when it holds anything else, were it a number
 * too large or written in two pieces. Nobody may write to it.
 */
export function readIds(bytes: Buffer, start: number, end: number): Int32Array | null {
  const most = (end - start) >> 1
  const ids = most > scratch.length ? new Int32Array(most) : scratch
  let count = 0
  let value = -1
  let first = 0
  for (let i = start + 1; i < end; i += 1) {
    const byte = bytes[i] ?? 0
    if (byte >= 0x30 && byte <= 0x39) {
      if (value === -1) {
        value = 0
        first = i
      } else if (value === 0 || i - first > 9 || (bytes[i - 1] ?? 0) < 0x30) return null
      value = value * 10 + (byte - 0x30)
    } else if (byte === 0x2c || byte === 0x5d) {
      if (value < 0) return byte === 0x5d && count === 0 ? new Int32Array(0) : null
      if (value > largestId) return null
      ids[count] = value
      count += 1
      value = -1
    } else if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return null
  }
  return kept(ids, count)
}

const largestId = 2 ** 31 - 1

const pageLength = 4096
/** Of the page that is being filled. */
let page = new Int32Array(0)
let used = 0

/** Prompts are needed until their call is stored: a short one costs less in a page of many than in memory of its own. */
function kept(ids: Int32Array, count: number): Int32Array {
  if (count > pageLength / 4) return ids.slice(0, count)
  if (used + count > page.length) {
    page = new Int32Array(pageLength)
    used = 0
  }
  // No `set`: it needs a view of the ids, and both are calls into native code.
  for (let i = 0; i < count; i += 1) page[used + i] = ids[i] ?? 0
  used += count
  return page.subarray(used - count, used)
}
