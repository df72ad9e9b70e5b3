import type { Field, Fraction } from './field.ts'
import { type FunctionName, functionNames, greek, inverses } from './names.ts'
import { decimalNumber, integer, NotUnderstood, rational } from './rational.ts'

/** Deepest nesting that is read. */
const deepest = 60

/** What both sides of a comparison are read with. */
export interface Reading {
  readonly field: Field
  /** Whether a letter before a bracket is a function of what the bracket holds, and no factor. */
  readonly isFunction: (letter: string) => boolean
}

/** Reads one expression whole, LaTeX or plain. Throws `NotUnderstood` where any sign or word of it is unknown. */
export function expressionOf(text: string, reading: Reading): Fraction {
  // A derivative is no quotient.
  if (/\\frac\s*\{\s*d(?:\s*\^.*|\s*\\?[A-Za-z]+)?\s*\}\s*\{\s*d|\bd\s*\\?[a-z]?\s*\/\s*\(?d\s*\\?[a-z]/.test(text))
    throw new NotUnderstood()
  return new Parser(text, reading).whole()
}

/** Whether letters side by side are a product and no word: `2ab`, and `xyz` with nothing beside it. */
export function isProduct(letters: string): boolean {
  return /^[xyz]+$/.test(letters)
}

/**
 * Of each letter whether it is a function: it stands directly before a bracket with letters in it, or with one number, and
 * nowhere else. A letter that also stands elsewhere is multiplied: `n(n+1)`.
 */
export function functionsOf(text: string): ReadonlyMap<string, boolean> {
  const found = new Map<string, boolean>()
  for (const { 0: all, index } of text.matchAll(/\\?[A-Za-z]+/g)) {
    const names = all.startsWith('\\') ? [all] : isNamed(all) ? [] : all.split('')
    for (const [i, name] of names.entries()) {
      const behind = i === names.length - 1 ? text.slice(index + all.length) : ''
      const inside = bracketed.exec(behind)?.[1]
      const holds = inside !== undefined && (/^\s*\d+\s*$|,/.test(inside) || /[A-Za-z]/.test(withoutNames(inside)))
      found.set(name, holds && found.get(name) !== false)
    }
  }
  return found
}

const bracketed = /^(?:_\w|_\{\w+\})?(?:'+|\^\s*\{?\s*-\s*1\s*\}?)?\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)/

function isNamed(letters: string): boolean {
  return functionNames[letters] !== undefined || letters === 'pi'
}

/** Without names of functions and constants. A Greek letter is a letter. */
function withoutNames(text: string): string {
  return text.replaceAll(/\\?([A-Za-z]+)/g, (all, name: string) =>
    isNamed(name) || ['frac', 'cdot', 'times', 'e'].includes(name) ? ' ' : all,
  )
}

class Parser {
  readonly #text: string
  readonly #field: Field
  readonly #isFunction: (letter: string) => boolean
  #at = 0
  #depth = 0
  #bars = 0

  constructor(text: string, { field, isFunction }: Reading) {
    this.#text = text
    this.#field = field
    this.#isFunction = isFunction
  }

  whole(): Fraction {
    const found = this.#sum()
    if (this.#rest() !== '') throw new NotUnderstood()
    return found
  }

  #sum(): Fraction {
    if ((this.#depth += 1) > deepest) throw new NotUnderstood()
    let left = this.#product()
    while (/^[+-]/.test(this.#rest())) left = this.#field.sum(left, this.#product())
    this.#depth -= 1
    return left
  }

  #product(): Fraction {
    let left = this.#signed()
    for (;;) {
      if (this.#take(/^(?:\*(?!\*)|\\(?:cdot|times|ast)(?![A-Za-z]))/)) left = this.#field.product(left, this.#signed())
      else if (this.#take(/^(?:\/|\\div(?![A-Za-z]))/)) left = this.#field.quotient(left, this.#signed())
      else if (this.#goesOn()) left = this.#field.product(left, this.#power())
      else return left
    }
  }

  #signed(): Fraction {
    let negative = false
    for (let sign = this.#take(/^[+-]/); sign !== null; sign = this.#take(/^[+-]/))
      negative = negative !== (sign[0] === '-')
    const of = this.#power()
    return negative ? this.#field.negative(of) : of
  }

  #power(): Fraction {
    if ((this.#depth += 1) > deepest) throw new NotUnderstood()
    const base = this.#marked()
    this.#depth -= 1
    if (!this.#take(/^(?:\^|\*\*)/)) return base
    const rest = this.#rest()
    const exponent =
      (rest.startsWith('{') && this.#group()) || (rest.startsWith('(') ? this.#marked() : this.#exponent())
    if (/^(?:\^|\*\*)/.test(this.#rest())) throw new NotUnderstood()
    return this.#field.power(base, exponent)
  }

  /** Behind a caret LaTeX takes one sign, plain text a signed number or letter. */
  #exponent(): Fraction {
    const number = this.#take(/^[+-]?\d+/)?.[0]
    if (number !== undefined) return this.#field.number(integer(BigInt(number)))
    return this.#take(/^-/) ? this.#field.negative(this.#argument()) : this.#argument()
  }

  /** An atom and the marks behind it: factorials, degrees. */
  #marked(): Fraction {
    let found = this.#atom()
    for (;;) {
      if (this.#take(/^!(?!!)/)) found = this.#field.call('factorial', [found])
      else if (this.#take(/^\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\})/)) {
        found = this.#field.product(found, this.#field.scaled(this.#field.pi(), rational(1n, 180n)))
      } else return found
    }
  }

  #atom(): Fraction {
    const found = this.#number() ?? this.#group()
    if (found !== null) return found
    if (this.#take(/^(?:\||\\[lv](?:ert|vert)(?![A-Za-z]))/)) return this.#bar()
    const command = this.#take(/^\\([A-Za-z]+)/)
    if (command !== null) return this.#command(command[1] ?? '')
    const letters = /^[A-Za-z]+/.exec(this.#rest())?.[0]
    if (letters === undefined) throw new NotUnderstood()
    return this.#letters(letters)
  }

  #number(): Fraction | null {
    const mixed = this.#take(
      /^(\d+)(?:\s+(\d+)\/(\d+)|\s*\\frac\s*(?:\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}|(\d)\s*(\d)))(?!\d)/,
    )
    if (mixed !== null) {
      const [whole = '', top = '', bottom = ''] = mixed.slice(1).filter((part) => part !== undefined)
      return this.#field.number(rational(BigInt(whole) * BigInt(bottom) + BigInt(top), BigInt(bottom)))
    }
    const again =
      this.#take(/^(\d*)\.(\d*)\\(?:overline|dot)(?![A-Za-z])\s*(?:\{\s*(\d+)\s*\}|(\d))/) ??
      this.#take(/^(\d+)\.(\d*)\((\d+)\)/)
    if (again !== null) {
      this.#noDigit()
      return this.#repeating(again[1] ?? '', again[2] ?? '', again[3] ?? again[4] ?? '')
    }
    const hex = this.#take(/^0[xX][\dA-Fa-f]+(?![\dA-Za-z.])/)?.[0]
    if (hex !== undefined) return this.#field.number(integer(BigInt(hex)))
    const plain = this.#take(/^(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4}(?![\dA-Za-z.]))?/)
    if (plain === null) return null
    this.#noDigit()
    return this.#field.number(decimalNumber(plain[0]))
  }

  /** Two numbers side by side are no product. */
  #noDigit(): void {
    if (/^[\d.]/.test(this.#rest())) throw new NotUnderstood()
  }

  /** `0.1` and then `6` for ever: (16 - 1) / 90. */
  #repeating(before: string, behind: string, again: string): Fraction {
    const [all, once] = [BigInt(`${before}${behind}${again}` || '0'), BigInt(`${before}${behind}` || '0')]
    return this.#field.number(rational(all - once, (10n ** BigInt(again.length) - 1n) * 10n ** BigInt(behind.length)))
  }

  #group(): Fraction | null {
    const open = this.#take(/^[({[]/)?.[0]
    if (open === undefined) return null
    const bars = this.#bars
    this.#bars = 0
    const inner = this.#sum()
    this.#bars = bars
    this.#need(open === '(' ? /^\)/ : open === '[' ? /^\]/ : /^\}/)
    return inner
  }

  #bar(): Fraction {
    this.#bars += 1
    const of = this.#sum()
    this.#need(/^(?:\||\\[rv](?:ert|vert)(?![A-Za-z]))/)
    this.#bars -= 1
    return this.#field.call('abs', [of])
  }

  #command(name: string): Fraction {
    if (name === 'frac' || name === 'binom') {
      const [top, below] = [this.#argument(), this.#argument()]
      return name === 'frac' ? this.#field.quotient(top, below) : this.#field.call('binomial', [top, below])
    }
    if (name === 'sqrt') {
      const degree = this.#rest().startsWith('[') ? this.#group() : null
      return this.#field.call('root', degree === null ? [this.#argument()] : [this.#argument(), degree])
    }
    if (name === 'lfloor' || name === 'lceil') {
      const of = this.#sum()
      this.#need(name === 'lfloor' ? /^\\rfloor(?![A-Za-z])/ : /^\\rceil(?![A-Za-z])/)
      return this.#field.call(name.slice(1), [of])
    }
    if (name === 'pi') return this.#field.pi()
    const call = functionNames[name]
    if (call !== undefined) return this.#call(call)
    if (greek.has(name)) return this.#variable(`\\${name}`)
    // Letters in a style of their own, and with accents, are letters of their own.
    const styled = /^(?:mathbf|boldsymbol|vec|hat|bar|tilde|overline|mathcal|mathbb)$/.test(name)
      ? this.#take(/^\s*(?:\{\s*(\\?[A-Za-z]+)\s*\}|([A-Za-z])(?![A-Za-z]))/)
      : null
    if (styled === null) throw new NotUnderstood()
    return this.#variable(`\\${name}{${styled[1] ?? styled[2] ?? ''}}`)
  }

  /** The argument of a command: a group in braces, or the one sign that follows. */
  #argument(): Fraction {
    const group = this.#rest().startsWith('{') ? this.#group() : null
    if (group !== null) return group
    const digit = this.#take(/^\d/)?.[0]
    if (digit !== undefined) return this.#field.number(integer(BigInt(digit)))
    const letter = this.#take(/^[A-Za-z]/)?.[0]
    if (letter !== undefined) return this.#named(letter)
    const command = this.#take(/^\\([A-Za-z]+)/)
    if (command === null) throw new NotUnderstood()
    return this.#command(command[1] ?? '')
  }

  #call(given: FunctionName): Fraction {
    let name = given
    const base = given === 'log' ? this.#base() : null
    let power: Fraction | null = null
    if (this.#take(/^\^\s*(?:\{\s*-1\s*\}|-1(?!\d))/)) {
      const inverse = inverses[name]
      if (inverse === undefined) throw new NotUnderstood()
      name = inverse
    } else if (this.#take(/^\^/)) power = this.#argument()
    const of = /^[({[|]/.test(this.#rest()) ? this.#atom() : this.#bare()
    const call = this.#field.call(name, base === null ? [of] : [of, base])
    return power === null ? call : this.#field.power(call, power)
  }

  /** `_2` or, in `log2(8)`, the 2; without one 10. */
  #base(): Fraction {
    if (this.#take(/^_/)) return this.#argument()
    const digits = this.#take(/^(?:2|10)(?=\()/)?.[0]
    return this.#field.number(integer(BigInt(digits ?? '10')))
  }

  /** What a function without brackets takes: a product of signs side by side, up to the next function. */
  #bare(): Fraction {
    let found = this.#power()
    while (this.#goesOn() && functionNames[/^\\?([A-Za-z]+)/.exec(this.#rest())?.[1] ?? ''] === undefined)
      found = this.#field.product(found, this.#power())
    return found
  }

  #letters(run: string): Fraction {
    // `sinx` is the sine of x.
    const called = [run, run.slice(0, -1)].find((name) => functionNames[name] !== undefined) ?? ''
    const call = functionNames[called]
    if (call !== undefined) {
      this.#at += called.length
      return this.#call(call)
    }
    if (run.startsWith('pi')) {
      this.#at += 2
      return this.#field.pi()
    }
    if (run.length > 3 && !isProduct(run)) throw new NotUnderstood()
    // Behind a number and a space a word begins: `5 cm`, `12 men`.
    if (run.length > 1 && !isProduct(run) && /\d\s+$/.test(this.#text.slice(0, this.#at))) throw new NotUnderstood()
    this.#at += 1
    return this.#named(run.slice(0, 1))
  }

  #named(letter: string): Fraction {
    const isPlain = !/^(?:_|')/.test(this.#rest())
    if (letter === 'e' && isPlain) return this.#field.e()
    if (letter === 'i' && isPlain) return this.#field.imaginary()
    return this.#variable(letter)
  }

  #variable(name: string): Fraction {
    const below = this.#take(/^_\s*(?:\{([^{}]*)\}|(\\[A-Za-z]+|[A-Za-z0-9]))/)
    const primes = this.#take(/^'+/)?.[0] ?? ''
    const index = below === null ? '' : `_${below[1] ?? below[2] ?? ''}`
    const whole = `${name}${index}${primes}`.replaceAll(/\s/g, '')
    const isCalled = this.#isFunction(name) || primes !== ''
    if (isCalled && this.#rest().startsWith('^')) throw new NotUnderstood()
    if (!isCalled || !this.#rest().startsWith('(')) return this.#field.variable(whole)
    this.#take(/^\(/)
    const of = [this.#sum()]
    while (this.#take(/^,/)) of.push(this.#sum())
    this.#need(/^\)/)
    return this.#field.variable(`${whole}()`, of)
  }

  /** Whether a factor follows without a sign of multiplication. */
  #goesOn(): boolean {
    const rest = this.#rest()
    if (/^\d/.test(rest) && /[!)}]\s*$/.test(this.#text.slice(0, this.#at))) return true
    if (/^[A-Za-z({[]/.test(rest) || (this.#bars === 0 && rest.startsWith('|'))) return true
    const name = /^\\([A-Za-z]+)/.exec(rest)?.[1]
    if (name === undefined) return false
    const begins = /^(?:frac|binom|sqrt|pi|lfloor|lceil|lvert|mathbf|boldsymbol|vec|hat|bar|tilde|overline|mathcal)$/
    return begins.test(name) || functionNames[name] !== undefined || greek.has(name)
  }

  /** What is left, without blanks in front. */
  #rest(): string {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at += 1
    return this.#text.slice(this.#at)
  }

  #need(pattern: RegExp): void {
    if (!this.#take(pattern)) throw new NotUnderstood()
  }

  #take(pattern: RegExp): RegExpExecArray | null {
    const found = pattern.exec(this.#rest())
    if (found !== null) this.#at += found[0].length
    return found
  }
}
