import { ShortTexts, skipSpace } from '../../../core/index.ts'

const texts = new ShortTexts()

/**
 * A strict reader of JSON text (RFC 8259) for values of a simple shape. Its methods take an index and give the index
 * behind what begins there, -1 where that is not JSON or not simple; what was read lies in the fields.
 */
export class JsonCursor {
  protected bytes: Buffer = noBytes
  /** Behind the last byte that may be read. */
  protected end = 0
  /** The string that was read last has escapes. */
  protected escaped = false
  /** The number that was read last. */
  protected value = 0
  /** How many integers were read last. */
  protected count = 0

  /** Behind white space. */
  protected space(at: number): number {
    // Compact text has none: the usual case is one comparison.
    return (this.bytes[at] ?? 0) > 0x20 ? at : skipSpace(this.bytes, at)
  }

  protected string(at: number): number {
    const { bytes, end } = this
    this.escaped = false
    if (bytes[at] !== 0x22) return -1
    for (let i = at + 1; i < end; i += 1) {
      const byte = bytes[i] ?? 0
      if (byte === 0x22) return i + 1
      if (byte === 0x5c) {
        i = escapeEnd(bytes, i)
        if (i === -1) return -1
        this.escaped = true
      } else if (byte < 0x20) return -1
    }
    return -1
  }

  /** The text of a string that was read, bounds with its quotes. */
  protected text(start: number, end: number, escaped: boolean): string {
    if (!escaped) return texts.find(this.bytes, start + 1, end - 1) ?? this.bytes.toString('utf8', start + 1, end - 1)
    const decoded: unknown = JSON.parse(this.bytes.toString('utf8', start, end))
    return String(decoded)
  }

  protected number(at: number): number {
    const { bytes } = this
    let i = bytes[at] === 0x2d ? at + 1 : at
    let mantissa = 0
    const first = i
    while (isDigit(bytes[i])) mantissa = mantissa * 10 + (bytes[i++] ?? 0) - 0x30
    if (i === first || (bytes[first] === 0x30 && i > first + 1)) return -1
    let decimals = 0
    if (bytes[i] === 0x2e) {
      const point = i
      i += 1
      while (isDigit(bytes[i])) mantissa = mantissa * 10 + (bytes[i++] ?? 0) - 0x30
      decimals = i - point - 1
      if (decimals === 0) return -1
    }
    let plain = true
    if (bytes[i] === 0x65 || bytes[i] === 0x45) {
      plain = false
      i += 1
      if (bytes[i] === 0x2b || bytes[i] === 0x2d) i += 1
      const exponent = i
      while (isDigit(bytes[i])) i += 1
      if (i === exponent) return -1
    }
    if (i > this.end) return -1
    // Both sides of the division are exact below 2^53 and 10^23, so its result is the nearest double (Clinger 1990).
    if (plain && mantissa < 2 ** 53 && decimals <= 22) {
      const size = mantissa / (powers[decimals] ?? 1)
      this.value = first > at ? -size : size
    } else this.value = Number(bytes.toString('latin1', at, i))
    return i
  }

  /** A string, number or literal, or an array or object without content. */
  protected scalar(at: number): number {
    const { bytes } = this
    switch (bytes[at]) {
      case 0x22:
        return this.string(at)
      case 0x6e:
        return this.literal(at, nullBytes)
      case 0x74:
        return this.literal(at, trueBytes)
      case 0x66:
        return this.literal(at, falseBytes)
      case 0x5b:
        return this.empty(at, 0x5d)
      case 0x7b:
        return this.empty(at, 0x7d)
      default:
        return this.number(at)
    }
  }

  /** A flat array of small non-negative integers, put into `into` from its first place on. */
  protected integers(at: number, into: Int32Array | null): number {
    const { bytes } = this
    let i = this.space(at + 1)
    this.count = 0
    if (bytes[i] === 0x5d) return i + 1
    for (;;) {
      const first = i
      let value = 0
      while (isDigit(bytes[i])) value = value * 10 + (bytes[i++] ?? 0) - 0x30
      // No leading zero, and what an Int32Array holds.
      if (i === first || i - first > 9 || (bytes[first] === 0x30 && i - first > 1)) return -1
      if (into !== null) {
        if (this.count === into.length) return -1
        into[this.count] = value
      }
      this.count += 1
      i = this.space(i)
      if (bytes[i] === 0x5d) return i + 1
      if (bytes[i] !== 0x2c) return -1
      i = this.space(i + 1)
    }
  }

  protected nothing(at: number): number {
    return this.literal(at, nullBytes)
  }

  /** `[]` or `{}`, whose last byte is given. */
  protected empty(at: number, close: number): number {
    const end = this.space(at + 1)
    return this.bytes[end] === close ? end + 1 : -1
  }

  private literal(at: number, literal: Buffer): number {
    for (let i = 0; i < literal.length; i += 1) if (this.bytes[at + i] !== literal[i]) return -1
    return at + literal.length
  }
}

const noBytes = Buffer.alloc(0)
const nullBytes = Buffer.from('null')
const trueBytes = Buffer.from('true')
const falseBytes = Buffer.from('false')
const powers = Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`))
/** What may stand behind a backslash, but for `u`. */
const escapes = Buffer.from('"\\/bfnrt')

/** Index of the last byte of the escape that begins at `at`, -1 where it is none. */
function escapeEnd(bytes: Buffer, at: number): number {
  const named = bytes[at + 1] ?? 0
  if (named !== 0x75) return escapes.includes(named) ? at + 1 : -1
  for (let i = at + 2; i < at + 6; i += 1) if (!isHex(bytes[i] ?? 0)) return -1
  return at + 5
}

function isHex(byte: number): boolean {
  return isDigit(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39
}

/** The name of a member with its quotes and the colon behind them, and the number that stands for it. */
interface Name {
  readonly written: Buffer
  readonly key: number
}

/** Names of members, found by their bytes without making a string. */
export class KeyTable {
  private readonly byLength: Name[][] = []
  /** By place in the object: what stood there last. Engines write their members in one order. */
  private readonly usual: Name[] = []

  /** `passed`: names that mean nothing, found sooner than others that do. */
  constructor(names: Readonly<Record<string, number>>, passed: readonly string[] = []) {
    for (const [name, key] of Object.entries(names)) this.add(name, key)
    for (const name of passed) this.add(name, 0)
  }

  /** The name that begins at `at`, where it stands in its usual place and in compact text; else null. */
  guess(bytes: Buffer, at: number, place: number): Name | null {
    const name = this.usual[place]
    return name !== undefined && isAt(bytes, at, name.written) ? name : null
  }

  /** The number of the name whose quotes begin and end at `[start, end)`, 0 where it is none of these. */
  find(bytes: Buffer, start: number, end: number, place: number): number {
    const candidates = this.byLength[end - start] ?? noNames
    for (let i = 0; i < candidates.length; i += 1) {
      const name = candidates[i]
      if (name === undefined || !isName(bytes, start, name.written)) continue
      if (place <= this.usual.length) this.usual[place] = name
      return name.key
    }
    return 0
  }

  private add(name: string, key: number): void {
    const length = name.length + 2
    while (this.byLength.length <= length) this.byLength.push([])
    this.byLength[length]?.push({ written: Buffer.from(`"${name}":`), key })
  }
}

const noNames: Name[] = []

function isName(bytes: Buffer, start: number, written: Buffer): boolean {
  for (let i = written.length - 3; i > 0; i -= 1) if (bytes[start + i] !== written[i]) return false
  return true
}

function isAt(bytes: Buffer, start: number, written: Buffer): boolean {
  for (let i = 0; i < written.length; i += 1) if (bytes[start + i] !== written[i]) return false
  return true
}
