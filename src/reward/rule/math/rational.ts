/** A fraction in lowest terms; `den` is positive. */
export interface Rational {
  readonly num: bigint
  readonly den: bigint
}

/** Longest number that is computed, in bits: `9^{9^9}` has a billion. */
const longestBits = 1 << 14
/** What one comparison may cost, in microseconds more or less. */
const budget = 100_000

/** Thrown where the grammar does not understand a text, or it has no value. The text is then compared as text. */
export class NotUnderstood extends Error {}

/** Counts what a comparison costs. `spend` throws {@link NotUnderstood} when it is used up. */
export class Effort {
  #left = budget

  spend(units: number): void {
    this.#left -= units
    if (this.#left < 0) throw new NotUnderstood()
  }
}

export const zero: Rational = { num: 0n, den: 1n }
export const one: Rational = { num: 1n, den: 1n }

/** An integer as a fraction. */
export function integer(num: bigint | number): Rational {
  return { num: BigInt(num), den: 1n }
}

/** A fraction in lowest terms. Throws {@link NotUnderstood} for a denominator of 0 and for what would be too long. */
export function rational(num: bigint, den: bigint): Rational {
  if (den === 0n || Math.max(bitsOf(num), bitsOf(den)) > longestBits) throw new NotUnderstood()
  if (den === 1n) return { num, den }
  const divisor = den < 0n ? -gcd(num, den) : gcd(num, den)
  return { num: num / divisor, den: den / divisor }
}

/** The greatest common divisor, positive. */
export function gcd(x: bigint, y: bigint): bigint {
  let [a, b] = [x, y]
  while (b !== 0n) [a, b] = [b, a % b]
  return a < 0n ? -a : a
}

export function plus(a: Rational, b: Rational): Rational {
  return rational(a.num * b.den + b.num * a.den, a.den * b.den)
}

export function times(a: Rational, b: Rational): Rational {
  return rational(a.num * b.num, a.den * b.den)
}

export function over(a: Rational, b: Rational): Rational {
  return rational(a.num * b.den, a.den * b.num)
}

/** `base` to an integer power. Throws {@link NotUnderstood} for 0 to anything but a positive one. */
export function integerPower(base: Rational, exponent: bigint): Rational {
  if (base.num === 0n && exponent <= 0n) throw new NotUnderstood()
  if (base.num === 0n) return base
  if (base.den === 1n && (base.num === 1n || base.num === -1n)) return integer(exponent % 2n === 0n ? 1n : base.num)
  const size = exponent < 0n ? -exponent : exponent
  // A number of n bits is at least 2 ** (n - 1); two is the least that grows.
  const bits = Math.max(base.num.toString(2).length, base.den.toString(2).length) - 1
  if (size * BigInt(Math.max(bits, 1)) > BigInt(longestBits)) throw new NotUnderstood()
  return exponent < 0n ? rational(base.den ** size, base.num ** size) : { num: base.num ** size, den: base.den ** size }
}

/** The positive root of a positive fraction where it is a fraction again; null where it is none. */
export function exactRoot({ num, den }: Rational, degree: number): Rational | null {
  const [a, b] = [integerRoot(num, degree), integerRoot(den, degree)]
  return a === null || b === null ? null : { num: a, den: b }
}

/** `n!`, up to 1000. */
export function factorial(of: Rational): Rational {
  if (of.den !== 1n || of.num < 0n || of.num > 1000n) throw new NotUnderstood()
  let product = 1n
  for (let factor = 2n; factor <= of.num; factor += 1n) product *= factor
  return rational(product, 1n)
}

/** The largest integer that is not larger. */
export function floor({ num, den }: Rational): bigint {
  const cut = num / den
  return num < 0n && cut * den !== num ? cut - 1n : cut
}

/** A decimal number's value by its digits: `12.5e-3`. */
export function decimalNumber(text: string): Rational {
  const [digits = '', exponent = '0'] = text.toLowerCase().split('e')
  const [before = '', behind = ''] = digits.split('.')
  const shift = BigInt(exponent) - BigInt(behind.length)
  return times(integer(BigInt(`${before}${behind}` || '0')), integerPower(integer(10n), shift))
}

/** Bits of an integer, rounded up to a multiple of 4. */
function bitsOf(n: bigint): number {
  return n.toString(16).length * 4
}

/** The root of a perfect power, by Newton's method; else null. */
function integerRoot(of: bigint, degree: number): bigint | null {
  if (of < 2n) return of
  const k = BigInt(degree)
  let guess = 1n << BigInt(Math.ceil(bitsOf(of) / degree))
  for (;;) {
    const next = ((k - 1n) * guess + of / guess ** (k - 1n)) / k
    if (next >= guess) break
    guess = next
  }
  return guess ** k === of ? guess : null
}
