import { PaddockError } from '../errors.ts'

/**
 * JSON whose parts survive: numbers keep their text (`1.0`, integers beyond 2^53, `-0`), objects keep key order and
 * duplicate keys, strings keep lone surrogates. White space between tokens does not survive.
 */
export type LosslessJson =
  | { readonly kind: 'null' }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'string'; readonly value: string; readonly raw: string }
  | { readonly kind: 'array'; readonly items: readonly LosslessJson[] }
  | { readonly kind: 'object'; readonly members: readonly LosslessMember[] }

export interface LosslessMember {
  readonly key: string
  /** The quoted key as written. */
  readonly raw: string
  readonly value: LosslessJson
}

/** Nesting that is refused: deeper input is an attack or a mistake, and the parser recurses. */
export const maxNesting = 256

/** Parses strictly by RFC 8259. Throws `BODY_INVALID_JSON` with the position. */
export function parseLossless(text: string): LosslessJson {
  const reader = new Reader(text)
  const value = reader.value(0)
  reader.end()
  return value
}

/** Compact text; a value that came from {@link parseLossless} without white space gives the same text back. */
export function stringifyLossless(value: LosslessJson): string {
  switch (value.kind) {
    case 'null':
      return 'null'
    case 'boolean':
      return value.value ? 'true' : 'false'
    case 'number':
      return value.text
    case 'string':
      return value.raw
    case 'array':
      return `[${value.items.map(stringifyLossless).join(',')}]`
    case 'object':
      return `{${value.members.map((member) => `${member.raw}:${stringifyLossless(member.value)}`).join(',')}}`
  }
}

/** Keys that an object in the value holds more than once, as dotted paths. */
export function duplicateKeys(value: LosslessJson, path = ''): string[] {
  if (value.kind === 'array') return value.items.flatMap((item, index) => duplicateKeys(item, `${path}[${index}]`))
  if (value.kind !== 'object') return []
  const seen = new Set<string>()
  const found: string[] = []
  for (const member of value.members) {
    const here = path === '' ? member.key : `${path}.${member.key}`
    if (seen.has(member.key)) found.push(here)
    seen.add(member.key)
    found.push(...duplicateKeys(member.value, here))
  }
  return found
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
// Anything but quote, backslash and control characters, or a legal escape (RFC 8259 §7).
// oxlint-disable-next-line no-control-regex
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const space = /[ \t\n\r]*/y

class Reader {
  private at = 0
  private readonly text: string

  constructor(text: string) {
    this.text = text
  }

  value(depth: number): LosslessJson {
    if (depth > maxNesting) throw this.invalid('it is nested too deeply')
    this.space()
    switch (this.text[this.at]) {
      case '{':
        return this.object(depth)
      case '[':
        return this.array(depth)
      case '"': {
        const raw = this.string()
        return { kind: 'string', raw, value: decode(raw) }
      }
      case 't':
        return this.word('true', { kind: 'boolean', value: true })
      case 'f':
        return this.word('false', { kind: 'boolean', value: false })
      case 'n':
        return this.word('null', { kind: 'null' })
      default: {
        const text = this.match(number)
        if (text === null) throw this.invalid('a value is expected')
        return { kind: 'number', text }
      }
    }
  }

  end(): void {
    this.space()
    if (this.at !== this.text.length) throw this.invalid('there is more after the value')
  }

  private object(depth: number): LosslessJson {
    const members: LosslessMember[] = []
    this.at += 1
    this.space()
    if (this.take('}')) return { kind: 'object', members }
    for (;;) {
      this.space()
      const raw = this.string()
      this.space()
      if (!this.take(':')) throw this.invalid('a colon is expected')
      members.push({ key: decode(raw), raw, value: this.value(depth + 1) })
      this.space()
      if (this.take('}')) return { kind: 'object', members }
      if (!this.take(',')) throw this.invalid('a comma or } is expected')
    }
  }

  private array(depth: number): LosslessJson {
    const items: LosslessJson[] = []
    this.at += 1
    this.space()
    if (this.take(']')) return { kind: 'array', items }
    for (;;) {
      items.push(this.value(depth + 1))
      this.space()
      if (this.take(']')) return { kind: 'array', items }
      if (!this.take(',')) throw this.invalid('a comma or ] is expected')
    }
  }

  private string(): string {
    const raw = this.match(string)
    if (raw === null) throw this.invalid('a string is expected')
    return raw
  }

  private word(word: string, value: LosslessJson): LosslessJson {
    if (!this.text.startsWith(word, this.at)) throw this.invalid('a value is expected')
    this.at += word.length
    return value
  }

  private space(): void {
    this.match(space)
  }

  private take(character: string): boolean {
    if (this.text[this.at] !== character) return false
    this.at += 1
    return true
  }

  private match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)
    if (found === null) return null
    this.at = pattern.lastIndex
    return found[0]
  }

  private invalid(what: string): PaddockError {
    return new PaddockError('BODY_INVALID_JSON', `Not valid JSON: ${what} at character ${this.at}.`, {
      data: { at: this.at },
    })
  }
}

function decode(raw: string): string {
  if (!raw.includes('\\')) return raw.slice(1, -1)
  return String(JSON.parse(raw))
}
