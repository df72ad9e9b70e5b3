import type { Expression, FunctionName } from './expression.ts'
import { functionNames, greek, inverses } from './names.ts'
import { integer, lowest, type Rational } from './rational.ts'

/** Deepest nesting that is read. */
const deepest = 60

/** Where the text is no expression of ours. */
class NoExpression extends Error {}

/** Reads one expression, LaTeX or plain; null for what is none, or holds a word, an infinity, or a sign nobody defined. */
export function parse(text: string): Expression | null {
  try {
    return new Parser(text).whole()
  } catch (error) {
    if (error instanceof NoExpression) return null
    throw error
  }
}

/** Whether letters without more stand for a product and not for a word: there are no words of x, y and z. */
export function isProduct(letters: string): boolean {
  return /^[xyz]+$/.test(letters)
}

/**
 * Whether a letter is a function of what the brackets behind it hold and no factor of it: `f(x+y)` is not `f(x)+f(y)`. Its
 * value at one place says nothing of any other. `g` and `h`, which are gravity and a height too, are one of a single sign.
 */
function isFunction(letter: string, behind: string): boolean {
  if (/^[gh](?:_\w+)?$/.test(letter)) return /^\(\s*(?:\d+|\\[A-Za-z]+|[A-Za-z])\s*\)/.test(behind)
  return /^(?:[fghF]|\\(?:Gamma|zeta|phi|varphi|psi))(?:_\w+)?'*$/.test(letter) && behind.startsWith('(')
}

class Parser {
  readonly #text: string
  #at = 0
  #depth = 0
  #bars = 0

  constructor(text: string) {
    this.#text = text
  }

  whole(): Expression {
    const found = this.#sum()
    if (this.#rest() !== '') throw new NoExpression()
    return found
  }

  #sum(): Expression {
    if ((this.#depth += 1) > deepest) throw new NoExpression()
    let left = this.#product()
    for (;;) {
      if (this.#take(/^\+/)) left = { kind: 'sum', left, right: this.#product() }
      else if (this.#take(/^-/)) left = { kind: 'sum', left, right: { kind: 'negative', of: this.#product() } }
      else break
    }
    this.#depth -= 1
    return left
  }

  #product(): Expression {
    let left = this.#signed()
    for (;;) {
      if (this.#take(/^(?:\*(?!\*)|\\(?:cdot|times|ast)(?![A-Za-z]))/)) {
        left = { kind: 'product', left, right: this.#signed() }
      } else if (this.#take(/^(?:\/|\\div(?![A-Za-z]))/)) left = { kind: 'quotient', left, right: this.#signed() }
      else if (this.#goesOn()) left = { kind: 'product', left, right: this.#power() }
      else return left
    }
  }

  #signed(): Expression {
    let negative = false
    for (let sign = this.#take(/^[+-]/); sign !== null; sign = this.#take(/^[+-]/))
      negative = negative !== (sign[0] === '-')
    const of = this.#power()
    return negative ? { kind: 'negative', of } : of
  }

  #power(): Expression {
    if ((this.#depth += 1) > deepest) throw new NoExpression()
    const base = this.#marked()
    this.#depth -= 1
    if (!this.#take(/^(?:\^|\*\*)/)) return base
    const braced = this.#group()
    const right = braced ?? this.#signed()
    // The inverse or the derivative of a function, or it applied again.
    if (base.kind === 'letter' && isFunction(base.name, this.#rest())) throw new NoExpression()
    return { kind: 'power', left: base, right }
  }

  /** An atom and the marks behind it: factorials, percent signs, degrees. */
  #marked(): Expression {
    let found = this.#atom()
    for (;;) {
      if (this.#take(/^!(?!!)/)) found = { kind: 'call', name: 'factorial', of: [found] }
      else if (this.#take(/^\\?%/)) found = { kind: 'quotient', left: found, right: whole(100n) }
      else if (this.#take(/^\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\})/)) {
        const turn: Expression = { kind: 'quotient', left: { kind: 'constant', name: 'pi' }, right: whole(180n) }
        found = { kind: 'product', left: found, right: turn }
      } else return found
    }
  }

  #atom(): Expression {
    const number = this.#number()
    if (number !== null) return number
    const group = this.#group()
    if (group !== null) return group
    if (this.#take(/^(?:\||\\[lv](?:ert|vert)(?![A-Za-z]))/)) return this.#bar()
    const command = this.#take(/^\\([A-Za-z]+)/)
    if (command !== null) return this.#command(command[1] ?? '')
    const letters = /^[A-Za-z]+/.exec(this.#rest())?.[0]
    if (letters === undefined) throw new NoExpression()
    return this.#letters(letters)
  }

  #number(): Expression | null {
    const mixed = this.#take(
      /^(\d+)(?:\s+(\d+)\/(\d+)|\s*\\frac\s*(?:\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}|(\d)\s*(\d)))(?!\d)/,
    )
    if (mixed !== null) {
      const [whole, top, bottom] = mixed.slice(1).filter((part) => part !== undefined)
      if (/^0*$/.test(bottom ?? '')) throw new NoExpression()
      const left: Expression = { kind: 'number', value: integer(BigInt(whole ?? '')), text: whole ?? '' }
      return { kind: 'sum', left, right: fraction(BigInt(top ?? ''), BigInt(bottom ?? '')) }
    }
    const again =
      this.#take(/^(\d*)\.(\d*)\\(?:overline|dot)(?![A-Za-z])\s*(?:\{\s*(\d+)\s*\}|(\d))/) ??
      this.#take(/^(\d+)\.(\d*)\((\d+)\)/)
    if (again !== null) {
      this.#noDigit()
      return repeating(again[1] ?? '', again[2] ?? '', again[3] ?? again[4] ?? '')
    }
    const hex = this.#take(/^0[xX][\dA-Fa-f]+(?![\dA-Za-z.])/)?.[0]
    if (hex !== undefined) return { kind: 'number', value: integer(BigInt(hex)), text: '' }
    const plain = this.#take(/^(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4}(?![\dA-Za-z.]))?/)
    if (plain === null) return null
    this.#noDigit()
    return { kind: 'number', value: decimalNumber(plain[0]), text: plain[0] }
  }

  /** Two numbers side by side are no product. */
  #noDigit(): void {
    if (/^[\d.]/.test(this.#rest())) throw new NoExpression()
  }

  #group(): Expression | null {
    const open = this.#take(/^[({[]/)?.[0]
    if (open === undefined) return null
    const bars = this.#bars
    this.#bars = 0
    const inner = this.#sum()
    this.#bars = bars
    if (!this.#take(open === '(' ? /^\)/ : open === '[' ? /^\]/ : /^\}/)) throw new NoExpression()
    return inner
  }

  #bar(): Expression {
    this.#bars += 1
    const of = this.#sum()
    if (!this.#take(/^(?:\||\\[rv](?:ert|vert)(?![A-Za-z]))/)) throw new NoExpression()
    this.#bars -= 1
    return { kind: 'call', name: 'abs', of: [of] }
  }

  #command(name: string): Expression {
    if (name === 'frac') return { kind: 'quotient', left: this.#argument(), right: this.#argument() }
    if (name === 'binom') return { kind: 'call', name: 'binomial', of: [this.#argument(), this.#argument()] }
    if (name === 'sqrt') {
      let degree = whole(2n)
      if (this.#take(/^\[/)) {
        degree = this.#sum()
        if (!this.#take(/^\]/)) throw new NoExpression()
      }
      return { kind: 'call', name: 'root', of: [this.#argument(), degree] }
    }
    if (name === 'lfloor' || name === 'lceil') return this.#rounded(name)
    if (name === 'pi') return { kind: 'constant', name: 'pi' }
    const call = functionNames[name]
    if (call !== undefined) return this.#call(call)
    if (greek.has(name)) return this.#subscripted(`\\${name}`)
    throw new NoExpression()
  }

  #rounded(name: 'lfloor' | 'lceil'): Expression {
    const of = this.#sum()
    if (!this.#take(name === 'lfloor' ? /^\\rfloor(?![A-Za-z])/ : /^\\rceil(?![A-Za-z])/)) throw new NoExpression()
    return { kind: 'call', name: name === 'lfloor' ? 'floor' : 'ceil', of: [of] }
  }

  /** The argument of a command: a group in braces, or the one sign that follows. */
  #argument(): Expression {
    if (this.#rest().startsWith('{')) {
      const group = this.#group()
      if (group !== null) return group
    }
    const digit = this.#take(/^\d/)?.[0]
    if (digit !== undefined) return { kind: 'number', value: integer(BigInt(digit)), text: digit }
    const letter = this.#take(/^[A-Za-z]/)?.[0]
    if (letter !== undefined) return named(letter)
    const command = this.#take(/^\\([A-Za-z]+)/)
    if (command === null) throw new NoExpression()
    return this.#command(command[1] ?? '')
  }

  #call(given: FunctionName): Expression {
    let name = given
    const base = given === 'log' ? this.#base() : null
    let power: Expression | null = null
    if (this.#take(/^\^\s*(?:\{\s*-1\s*\}|-1(?!\d))/)) {
      const inverse = inverses[name]
      if (inverse === undefined) throw new NoExpression()
      name = inverse
    } else if (this.#take(/^\^/)) power = this.#argument()
    const second = given === 'root' ? whole(2n) : base
    const of = /^[({[|]/.test(this.#rest()) ? this.#atom() : this.#bare()
    const call: Expression = { kind: 'call', name, of: second === null ? [of] : [of, second] }
    return power === null ? call : { kind: 'power', left: call, right: power }
  }

  /** `_2` or, in `log2(8)`, the 2; without one 10. */
  #base(): Expression {
    if (this.#take(/^_/)) return this.#argument()
    const digits = this.#take(/^(?:2|10)(?=\()/)?.[0]
    return whole(BigInt(digits ?? '10'))
  }

  /** What a function without brackets takes: a product of signs side by side, up to the next function. */
  #bare(): Expression {
    let found = this.#power()
    while (this.#goesOn() && !this.#isFunction()) found = { kind: 'product', left: found, right: this.#power() }
    return found
  }

  #isFunction(): boolean {
    const name = /^\\?([A-Za-z]+)/.exec(this.#rest())?.[1]
    return name !== undefined && functionNames[name] !== undefined
  }

  #letters(run: string): Expression {
    // `sinx` is the sine of x.
    const called = [run, run.slice(0, -1)].find((name) => functionNames[name] !== undefined) ?? ''
    const call = functionNames[called]
    if (call !== undefined) {
      this.#at += called.length
      return this.#call(call)
    }
    if (run.startsWith('pi')) {
      this.#at += 2
      return { kind: 'constant', name: 'pi' }
    }
    if (run.length > 3 && !isProduct(run)) throw new NoExpression()
    // Behind a number and a space a word begins: `5 cm`, `12 men`.
    if (run.length > 1 && !isProduct(run) && /\d\s+$/.test(this.#text.slice(0, this.#at))) throw new NoExpression()
    const name = run.slice(0, 1)
    this.#at += 1
    return name === 'e' ? named('e') : this.#subscripted(name)
  }

  #subscripted(name: string): Expression {
    const below = this.#take(/^_\s*(?:\{([^{}]*)\}|(\\[A-Za-z]+|[A-Za-z0-9]))/)
    const primes = this.#take(/^'+/)?.[0] ?? ''
    const index = below === null ? '' : `_${below[1] ?? below[2] ?? ''}`
    const letter = `${name}${index}${primes}`.replaceAll(/\s/g, '')
    if (!isFunction(letter, this.#rest())) return { kind: 'letter', name: letter }
    const given = this.#take(/^\([^()]*\)/)?.[0]
    if (given === undefined) throw new NoExpression()
    return { kind: 'letter', name: `${letter}${given.replaceAll(/\s/g, '')}` }
  }

  /** Whether a factor follows without a sign of multiplication. */
  #goesOn(): boolean {
    const rest = this.#rest()
    if (/^\d/.test(rest) && this.#text[this.#at - 1] === '!') return true
    if (/^[A-Za-z({[]/.test(rest) || (this.#bars === 0 && rest.startsWith('|'))) return true
    const name = /^\\([A-Za-z]+)/.exec(rest)?.[1]
    if (name === undefined) return false
    const begins = ['frac', 'binom', 'sqrt', 'pi', 'lfloor', 'lceil', 'lvert'].includes(name)
    return begins || functionNames[name] !== undefined || greek.has(name)
  }

  /** What is left, without blanks in front. */
  #rest(): string {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at += 1
    return this.#text.slice(this.#at)
  }

  #take(pattern: RegExp): RegExpExecArray | null {
    const found = pattern.exec(this.#rest())
    if (found !== null) this.#at += found[0].length
    return found
  }
}

function named(letter: string): Expression {
  return letter === 'e' ? { kind: 'constant', name: 'e' } : { kind: 'letter', name: letter }
}

function whole(n: bigint): Expression {
  return { kind: 'number', value: integer(n), text: '' }
}

function fraction(num: bigint, den: bigint): Expression {
  return { kind: 'quotient', left: whole(num), right: whole(den) }
}

/** `12.5e-3` as a fraction, by its digits. */
function decimalNumber(text: string): Rational {
  const [digits = '', exponent = '0'] = text.toLowerCase().split('e')
  const [before = '', behind = ''] = digits.split('.')
  const shift = Number(exponent) - behind.length
  const num = BigInt(`${before}${behind}` || '0')
  return shift >= 0 ? integer(num * 10n ** BigInt(shift)) : lowest({ num, den: 10n ** BigInt(-shift) })
}

/** `0.1` and then `6` for ever: (16 - 1) / 90. */
function repeating(before: string, behind: string, again: string): Expression {
  const all = BigInt(`${before}${behind}${again}` || '0')
  const once = BigInt(`${before}${behind}` || '0')
  const den = (10n ** BigInt(again.length) - 1n) * 10n ** BigInt(behind.length)
  return { kind: 'number', value: lowest({ num: all - once, den }), text: '' }
}
