/**
 * A small JSON reader that loses nothing a chat template could show: number lexemes (`1.0`, integers beyond 2^53), key
 * order (also of keys that look like integers), and the difference between absent and null.
 */

/** A number as it was written. */
export class JsonNumber {
  readonly raw: string

  constructor(raw: string) {
    this.raw = raw
  }

  /** The nearest double. */
  get value(): number {
    return Number(this.raw)
  }
}

export type JsonObject = Map<string, Json>
export type Json = null | boolean | string | JsonNumber | Json[] | JsonObject

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const SPACE = /[ \t\n\r]*/y
const MAX_DEPTH = 512

/** Parses RFC 8259 text. Throws SyntaxError with the offset on anything else; a repeated key keeps its last value. */
export function parseJson(text: string): Json {
  const reader = new Reader(text)
  const value = reader.value(0)
  reader.end()
  return value
}

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  end(): void {
    this.#skipSpace()
    if (this.#at < this.#text.length) throw this.#unexpected()
  }

  value(depth: number): Json {
    if (depth > MAX_DEPTH) throw new SyntaxError(`JSON nested deeper than ${MAX_DEPTH} at ${this.#at}`)
    this.#skipSpace()
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object(depth)
      case '[':
        return this.#array(depth)
      case '"':
        return this.#string()
      case 't':
        return this.#word('true', true)
      case 'f':
        return this.#word('false', false)
      case 'n':
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #object(depth: number): JsonObject {
    const object: JsonObject = new Map()
    this.#at++
    if (this.#take('}')) return object
    do {
      this.#skipSpace()
      if (this.#text[this.#at] !== '"') throw this.#unexpected()
      const key = this.#string()
      if (!this.#take(':')) throw this.#unexpected()
      object.set(key, this.value(depth + 1))
    } while (this.#take(','))
    if (!this.#take('}')) throw this.#unexpected()
    return object
  }

  #array(depth: number): Json[] {
    const items: Json[] = []
    this.#at++
    if (this.#take(']')) return items
    do items.push(this.value(depth + 1))
    while (this.#take(','))
    if (!this.#take(']')) throw this.#unexpected()
    return items
  }

  #string(): string {
    const start = this.#at
    let end = this.#text.indexOf('"', start + 1)
    while (end !== -1 && this.#escaped(start, end)) end = this.#text.indexOf('"', end + 1)
    if (end === -1) throw new SyntaxError(`JSON string not closed, opened at ${start}`)
    this.#at = end + 1
    // The platform's reader handles escapes and refuses control characters; numbers are what it would spoil.
    return String(JSON.parse(this.#text.slice(start, this.#at)))
  }

  #escaped(start: number, quote: number): boolean {
    let backslashes = 0
    for (let at = quote - 1; at > start && this.#text[at] === '\\'; at--) backslashes++
    return backslashes % 2 === 1
  }

  #number(): JsonNumber {
    NUMBER.lastIndex = this.#at
    const match = NUMBER.exec(this.#text)
    if (match === null) throw this.#unexpected()
    this.#at = NUMBER.lastIndex
    return new JsonNumber(match[0])
  }

  #word<T extends Json>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw this.#unexpected()
    this.#at += word.length
    return value
  }

  #take(char: string): boolean {
    this.#skipSpace()
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }

  #skipSpace(): void {
    SPACE.lastIndex = this.#at
    SPACE.exec(this.#text)
    this.#at = SPACE.lastIndex
  }

  #unexpected(): SyntaxError {
    const found = this.#text[this.#at]
    return new SyntaxError(
      found === undefined ? 'JSON ends too early' : `unexpected ${JSON.stringify(found)} in JSON at ${this.#at}`,
    )
  }
}

/**
 * Writes JSON the way Python's `json.dumps(value, ensure_ascii=False)` does (`", "` and `": "`), which is what vLLM and
 * the templates of the main families put in front of a model. Number lexemes stay as they were read.
 */
export function dumpJson(value: Json): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return JSON.stringify(value)
  if (value instanceof JsonNumber) return value.raw
  if (Array.isArray(value)) return `[${value.map(dumpJson).join(', ')}]`
  return `{${[...value].map(([key, item]) => `${JSON.stringify(key)}: ${dumpJson(item)}`).join(', ')}}`
}

/** A form in which two values are equal exactly when they mean the same: keys sorted, numbers by value. */
export function canonicalJson(value: Json): string {
  if (value instanceof JsonNumber) return Number.isSafeInteger(value.value) ? String(value.value) : value.raw
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (value instanceof Map) {
    const keys = [...value.keys()].toSorted()
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(value.get(key) ?? null)}`).join(',')}}`
  }
  return JSON.stringify(value)
}

/** Plain data (of our own making) as lossless JSON. */
export function toJson(value: unknown): Json {
  return parseJson(JSON.stringify(value))
}
