/** A value of a call's argument: what a Python literal can be. */
export type Literal = string | number | boolean | null | readonly Literal[]

/** A call as it is written in Python: `pyautogui.click(10, y=20)`. */
export interface Call {
  /** With dots, as written. */
  readonly name: string
  readonly positional: readonly Literal[]
  readonly keyword: ReadonlyMap<string, Literal>
}

/** What a text came to: its calls, or what is wrong with it and where. */
export type ParsedCalls =
  | { readonly ok: true; readonly calls: readonly Call[] }
  | { readonly ok: false; readonly error: string }

/**
 * Reads calls with literal arguments, one behind the other, divided by line ends or semicolons; comments and imports are left out. A
 * small part of Python's grammar and no more: nothing is evaluated, so nothing can be run by it. `bareWords` are calls
 * without parentheses.
 */
export function parseCalls(text: string, bareWords: readonly string[] = []): ParsedCalls {
  const reader = new CallReader(text, bareWords)
  try {
    return { ok: true, calls: reader.all() }
  } catch (cause) {
    if (cause instanceof NotACall) return { ok: false, error: cause.message }
    throw cause
  }
}

/**
 * The arguments of a call by the names of its parameters, or a text that says which it does not take: an argument that
 * nobody reads would be something else done than what was said.
 */
export function argumentsOf(call: Call, parameters: readonly string[]): ReadonlyMap<string, Literal> | string {
  const takes = `${call.name} takes ${parameters.length === 0 ? 'no arguments' : parameters.join(', ')}`
  const given = new Map<string, Literal>()
  for (const [at, value] of call.positional.entries()) {
    const name = parameters[at]
    if (name === undefined) return `${takes}: ${call.positional.length} arguments are too many.`
    given.set(name, value)
  }
  for (const [name, value] of call.keyword) {
    if (!parameters.includes(name)) return `${takes}, and no ${name}.`
    if (given.has(name)) return `${takes}: ${name} is given twice.`
    given.set(name, value)
  }
  return given
}

class NotACall extends Error {}

const escapes: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\u0007',
  b: '\b',
  f: '\f',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '\n': '',
}
const words: Readonly<Record<string, Literal>> = { True: true, False: false, None: null }

class CallReader {
  private at = 0
  private readonly text: string
  private readonly bareWords: readonly string[]

  constructor(text: string, bareWords: readonly string[]) {
    this.text = text
    this.bareWords = bareWords
  }

  all(): Call[] {
    const calls: Call[] = []
    for (;;) {
      this.skip(/(?:\s|;|#[^\n]*|(?:import|from)[ \t][^\n;]*)*/y)
      if (this.at >= this.text.length) return calls
      calls.push(this.call())
    }
  }

  private call(): Call {
    const name = this.take(/[A-Za-z_][\w.]*/y) ?? this.fail('a call such as click(x=10, y=20) was expected')
    if (this.bareWords.includes(name) && !/^\s*\(/.test(this.text.slice(this.at))) {
      return { name, positional: [], keyword: new Map() }
    }
    this.space()
    if (!this.eat('(')) this.fail(`${name} must be followed by its arguments in parentheses`)
    const positional: Literal[] = []
    const keyword = new Map<string, Literal>()
    for (;;) {
      this.space()
      if (this.eat(')')) return { name, positional, keyword }
      const key = this.take(/[A-Za-z_]\w*(?=\s*=)/y)
      if (key === null) positional.push(this.literal())
      else {
        this.skip(/\s*=\s*/y)
        if (keyword.has(key)) this.fail(`${key} is given twice`)
        keyword.set(key, this.literal())
      }
      this.space()
      if (!this.eat(',') && this.text[this.at] !== ')') this.fail(`arguments of ${name} must be divided by commas`)
    }
  }

  private literal(): Literal {
    const number = this.take(/[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/y)
    if (number !== null) return Number(number)
    if (this.text[this.at] === "'" || this.text[this.at] === '"') return this.string()
    if (this.eat('[')) return this.items(']')
    if (this.eat('(')) return this.items(')')
    const word = this.take(/[A-Za-z_]\w*/y)
    if (word !== null && word in words) return words[word] ?? null
    return this.fail('only numbers, texts in quotes and lists of them can be arguments')
  }

  private items(end: string): Literal[] {
    const items: Literal[] = []
    for (;;) {
      this.space()
      if (this.eat(end)) return items
      items.push(this.literal())
      this.space()
      if (!this.eat(',') && this.text[this.at] !== end) this.fail('items of a list must be divided by commas')
    }
  }

  private string(): string {
    const triple = this.take(/'''|"""/y)
    const quote = triple ?? this.text[this.at] ?? ''
    if (triple === null) this.at += 1
    let value = ''
    while (this.at < this.text.length) {
      if (this.text.startsWith(quote, this.at)) {
        this.at += quote.length
        return value
      }
      const sign = this.text[this.at] ?? ''
      const escaped = this.text[this.at + 1] ?? ''
      const code = sign === '\\' ? this.code() : null
      if (code !== null) value += code
      else if (sign === '\\' && escaped in escapes) {
        value += escapes[escaped] ?? ''
        this.at += 2
      } else {
        value += sign
        this.at += 1
      }
    }
    return this.fail('a text in quotes does not end')
  }

  /** The sign of an escape by its number (`\x41`, `\101`, `\u00e9`, `\U0001f600`); null for anything else. */
  private code(): string | null {
    const octal = this.take(/\\[0-7]{1,3}/y)
    if (octal !== null) return String.fromCodePoint(Number.parseInt(octal.slice(1), 8))
    if (this.text.startsWith('\\N{', this.at)) this.fail('a sign by its name is not read')
    const found = this.take(/\\(?:x[\da-f]{2}|u[\da-f]{4}|U[\da-f]{8})/iy)
    if (found === null) return null
    const point = Number.parseInt(found.slice(2), 16)
    return point <= 0x10_ffff ? String.fromCodePoint(point) : this.fail(`${found} is no character`)
  }

  private space(): void {
    this.skip(/\s*/y)
  }

  private eat(sign: string): boolean {
    if (!this.text.startsWith(sign, this.at)) return false
    this.at += sign.length
    return true
  }

  private skip(pattern: RegExp): void {
    this.take(pattern)
  }

  /** What matches here, null when nothing does. */
  private take(pattern: RegExp): string | null {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)?.[0] ?? ''
    this.at += found.length
    return found === '' ? null : found
  }

  private fail(what: string): never {
    const here = this.text.slice(this.at, this.at + 30)
    throw new NotACall(`${what}${here === '' ? '' : `, at ${JSON.stringify(here)}`}`)
  }
}

/** A text as a Python literal in single quotes. */
export function quoted(text: string): string {
  const signs: Readonly<Record<string, string>> = { '\\': '\\\\', "'": "\\'", '\n': '\\n', '\t': '\\t', '\r': '\\r' }
  return `'${text.replaceAll(/[\\'\n\t\r]/g, (sign) => signs[sign] ?? sign)}'`
}
