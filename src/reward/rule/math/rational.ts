/** A fraction; `den` is positive. */
export interface Rational {
  readonly num: bigint
  readonly den: bigint
}

/** Longest number that is computed, in bits: `9^{9^9}` has a billion. */
const longestBits = 1 << 15
/** Up to here fractions are brought to lowest terms as they are made. */
const shortBits = 512
/** What one comparison may cost, in microseconds more or less. */
const budget = 300_000

/** Thrown where a comparison would cost too much; it then ends without a match. */
export class TooCostly extends Error {}

/** Counts what a comparison costs. `spend` throws {@link TooCostly} when it is used up. */
export class Effort {
  #left = budget

  spend(units: number): void {
    this.#left -= units
    if (this.#left < 0) throw new TooCostly()
  }
}

/** A fraction; null for a denominator of 0, and where it would be too long. Long ones are not brought to lowest terms. */
export function rational(num: bigint, den: bigint, effort: Effort): Rational | null {
  if (den === 0n) return null
  const bits = Math.max(bitsOf(num), bitsOf(den))
  if (bits > longestBits) return null
  effort.spend(1 + bits / 64)
  const positive = den < 0n ? { num: -num, den: -den } : { num, den }
  return bits > shortBits ? positive : lowest(positive)
}

/** A fraction without common divisors. Costs the square of its length. */
export function lowest({ num, den }: Rational): Rational {
  let [a, b] = [num < 0n ? -num : num, den]
  while (b !== 0n) [a, b] = [b, a % b]
  return a === 1n || a === 0n ? { num, den } : { num: num / a, den: den / a }
}

/** Whether two fractions are one number. */
export function sameRational(a: Rational, b: Rational): boolean {
  return a.num * b.den === b.num * a.den
}

/** An integer as a fraction. */
export function integer(num: bigint): Rational {
  return { num, den: 1n }
}

/** The whole number that a fraction is; null where it is none. */
export function wholeOf({ num, den }: Rational): bigint | null {
  return den === 1n ? num : num % den === 0n ? num / den : null
}

/** `base` to an integer power; null for 0 to a negative one, for 0 to 0, and where it would be too long. */
export function integerPower(base: Rational, exponent: bigint, effort: Effort): Rational | null {
  if (base.num === 0n) return exponent > 0n ? base : null
  if (base.den === 1n && (base.num === 1n || base.num === -1n)) return integer(exponent % 2n === 0n ? 1n : base.num)
  const size = exponent < 0n ? -exponent : exponent
  if (size > BigInt(longestBits)) return null
  const bits = Math.max(bitsOf(base.num), bitsOf(base.den)) * Number(size)
  if (bits > 2 * longestBits) return null
  effort.spend(1 + (bits * bits) / 65_536)
  const [num, den] = [base.num ** size, base.den ** size]
  if (exponent >= 0n) return { num, den }
  return num < 0n ? { num: -den, den: -num } : { num: den, den: num }
}

/** The real root of a degree where it is a fraction again; null where it is none. */
export function exactRoot(given: Rational, degree: bigint, effort: Effort): Rational | null {
  effort.spend(bitsOf(given.den) ** 2 / 4096)
  const of = lowest(given)
  if (degree < 1n || degree > 1000n || (of.num < 0n && degree % 2n === 0n)) return null
  const num = integerRoot(of.num < 0n ? -of.num : of.num, degree, effort)
  const den = integerRoot(of.den, degree, effort)
  return num === null || den === null ? null : { num: of.num < 0n ? -num : num, den }
}

/** `n!`, for integers from 0 to 1000. */
export function factorial(of: Rational, effort: Effort): Rational | null {
  const n = wholeOf(of)
  if (n === null || n < 0n || n > 1000n) return null
  effort.spend(1 + Number(n))
  let product = 1n
  for (let factor = 2n; factor <= n; factor += 1n) product *= factor
  return integer(product)
}

/** The largest integer that is not larger. */
export function floor({ num, den }: Rational): Rational {
  const cut = num / den
  return integer(num < 0n && cut * den !== num ? cut - 1n : cut)
}

/** Bits of an integer, rounded up to a multiple of 4. */
export function bitsOf(n: bigint): number {
  return n.toString(16).length * 4
}

/** The root of a number that is a perfect power, by Newton's method; else null. */
function integerRoot(of: bigint, degree: bigint, effort: Effort): bigint | null {
  if (of < 2n || degree === 1n) return of
  const bits = bitsOf(of)
  let guess = 1n << BigInt(Math.ceil(bits / Number(degree)))
  for (;;) {
    effort.spend(1 + (bits * bits) / 65_536)
    const next = ((degree - 1n) * guess + of / guess ** (degree - 1n)) / degree
    if (next >= guess) break
    guess = next
  }
  return guess ** degree === of ? guess : null
}
