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
 * Reads calls with literal arguments, one behind the other, divided by line ends or semicolons; comments are left out. A
 * small part of Python's grammar and no more: nothing is evaluated, so nothing can be run by it.
 */
export function parseCalls(text: string): ParsedCalls {
  const reader = new CallReader(text)
  try {
    return { ok: true, calls: reader.all() }
  } catch (cause) {
    if (cause instanceof NotACall) return { ok: false, error: cause.message }
    throw cause
  }
}

class NotACall extends Error {}

const escapes: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '\n': '',
}
const words: Readonly<Record<string, Literal>> = { True: true, False: false, None: null }

class CallReader {
  private at = 0
  private readonly text: string

  constructor(text: string) {
    this.text = text
  }

  all(): Call[] {
    const calls: Call[] = []
    for (;;) {
      this.skip(/(?:\s|;|#[^\n]*)*/y)
      if (this.at >= this.text.length) return calls
      calls.push(this.call())
    }
  }

  private call(): Call {
    const name = this.take(/[A-Za-z_][\w.]*/y) ?? this.fail('a call such as click(x=10, y=20) was expected')
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
      if (sign === '\\' && escaped in escapes) {
        value += escapes[escaped] ?? ''
        this.at += 2
      } else {
        value += sign
        this.at += 1
      }
    }
    return this.fail('a text in quotes does not end')
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
