import { Decimal as Base } from 'decimal.js'
import type { Expression, FunctionName } from './expression.ts'
import {
  bitsOf,
  type Effort,
  exactRoot,
  factorial,
  floor,
  integer,
  integerPower,
  lowest,
  type Rational,
  rational,
  sameRational,
  wholeOf,
} from './rational.ts'

/** 120 digits, of which 60 are compared: what is lost on the way lies far below. */
const Decimal = Base.clone({ precision: 120, maxE: 20_000, minE: -20_000, defaults: true })
type Decimal = InstanceType<typeof Decimal>
const tolerance = new Decimal('1e-60')
/** Beyond this a difference of one would be below what is compared. */
const largest = new Decimal('1e45')
const pi = Decimal.acos(-1)
const e = Decimal.exp(1)

/** A number: a fraction where it is one, else 120 digits. Never infinite; null stands for no real number. */
export type Value = Rational | Decimal

/** The value of an expression with its letters at `letters`. Throws `TooCostly`. */
export function valueOf(of: Expression, letters: ReadonlyMap<string, Rational>, effort: Effort): Value | null {
  effort.spend(1)
  const at = (part: Expression) => valueOf(part, letters, effort)
  switch (of.kind) {
    case 'number':
      return of.value
    case 'letter':
      return letters.get(of.name) ?? null
    case 'constant':
      return of.name === 'pi' ? pi : e
    case 'negative': {
      const value = at(of.of)
      return value === null ? null : isExact(value) ? { num: -value.num, den: value.den } : value.negated()
    }
    case 'call': {
      const values = of.of.map(at)
      return values.every((value) => value !== null) ? called(of.name, values, effort) : null
    }
    case 'sum':
    case 'product':
    case 'quotient':
    case 'power': {
      const [left, right] = [at(of.left), at(of.right)]
      return left === null || right === null ? null : combined(of.kind, left, right, effort)
    }
  }
}

/** Fractions by their digits; others to 60 digits, however small they are: `e^{-200}` is not 0. */
export function sameValue(a: Value, b: Value): boolean {
  if (isExact(a) && isExact(b)) return sameRational(a, b)
  const [x, y] = [decimal(a), decimal(b)]
  return x !== null && y !== null && isLost(x.minus(y), x, y)
}

/** Whether a value is 0. What cancels out is made 0 where it does. */
export function isZero(value: Value): boolean {
  return isExact(value) ? value.num === 0n : value.isZero()
}

/** Whether of a difference only what was rounded on the way is left. */
function isLost(difference: Decimal, x: Decimal, y: Decimal): boolean {
  return difference.abs().lte(Decimal.max(x.abs(), y.abs()).times(tolerance))
}

/** `a / b`; null where `b` is 0. */
export function ratio(a: Value, b: Value, effort: Effort): Value | null {
  return isZero(b) ? null : combined('quotient', a, b, effort)
}

/** Whether a value is a fraction that no decimal number ends at, or no fraction at all. */
export function neverEnds(value: Value): boolean {
  if (!isExact(value)) return true
  let { den } = lowest(value)
  for (const prime of [2n, 5n]) while (den % prime === 0n) den /= prime
  return den !== 1n
}

/** The double next to a value. */
export function nearestDouble(value: Value): number {
  return decimal(value)?.toNumber() ?? Number.NaN
}

function isExact(value: Value): value is Rational {
  return 'num' in value
}

function combined(
  kind: 'sum' | 'product' | 'quotient' | 'power',
  left: Value,
  right: Value,
  effort: Effort,
): Value | null {
  if (kind === 'power') return raised(left, right, effort)
  if (isExact(left) && isExact(right)) {
    if (kind === 'sum') return rational(left.num * right.den + right.num * left.den, left.den * right.den, effort)
    if (kind === 'product') return rational(left.num * right.num, left.den * right.den, effort)
    return rational(left.num * right.den, left.den * right.num, effort)
  }
  const [x, y] = [decimal(left), decimal(right)]
  if (x === null || y === null) return null
  effort.spend(50)
  if (kind === 'sum') return isLost(x.plus(y), x, y) ? integer(0n) : bounded(x.plus(y))
  if (kind === 'product') return bounded(x.times(y))
  return isZero(y) ? null : bounded(x.dividedBy(y))
}

function raised(base: Value, exponent: Value, effort: Effort): Value | null {
  if (isExact(exponent)) {
    if (isExact(base)) {
      const whole = wholeOf(exponent)
      if (whole !== null) return integerPower(base, whole, effort)
      const root = exactRoot(base, exponent.den, effort)
      if (root !== null) return integerPower(root, exponent.num, effort)
      // The real root of a negative number, where the degree is odd.
      if (base.num < 0n && exponent.den % 2n === 1n) {
        const size = raised({ num: -base.num, den: base.den }, exponent, effort)
        if (size === null || isExact(size)) return size
        return exponent.num % 2n === 0n ? size : size.negated()
      }
    } else if (exponent.num === 0n) return isZero(base) ? null : integer(1n)
  }
  const [x, y] = [decimal(base), decimal(exponent)]
  if (x === null || y === null || (x.isZero() && y.lte(0)) || (x.isNegative() && !y.isInteger())) return null
  effort.spend(3000)
  return bounded(x.pow(y))
}

function called(name: FunctionName, values: readonly Value[], effort: Effort): Value | null {
  const [of, second] = values
  if (of === undefined) return null
  if (name === 'factorial') return isExact(of) ? factorial(of, effort) : null
  if (name === 'floor' || name === 'ceil') {
    if (isExact(of)) return name === 'floor' ? floor(of) : negated(floor(negated(of)))
    return integer(BigInt((name === 'floor' ? of.floor() : of.ceil()).toFixed()))
  }
  if (name === 'abs') return isExact(of) ? (of.num < 0n ? negated(of) : of) : of.abs()
  if (name === 'root') {
    const inverse = second !== undefined && isExact(second) ? rational(second.den, second.num, effort) : null
    return inverse === null ? null : raised(of, inverse, effort)
  }
  if (name === 'binomial') return second === undefined ? null : binomial(of, second, effort)
  const x = decimal(of)
  if (x === null) return null
  effort.spend(3000)
  if (name === 'log') {
    const base = second === undefined ? null : decimal(second)
    if (base === null || base.lte(0) || isLost(base.minus(one), base, one) || x.lte(0)) return null
    return isLost(x.minus(one), x, one) ? integer(0n) : bounded(x.ln().dividedBy(base.ln()))
  }
  const value = plain[name](x)
  // At a zero of the function, as the sine of pi; where the number itself is as small, so is the value.
  return name !== 'exp' && value.abs().lt(tolerance) && x.abs().gt(tolerance) ? integer(0n) : bounded(value)
}

type Plain = Exclude<FunctionName, 'factorial' | 'floor' | 'ceil' | 'abs' | 'root' | 'binomial' | 'log'>
const one = new Decimal(1)
/** Functions of one number. What decimal.js does not know is made of what it knows. */
const plain: Readonly<Record<Plain, (x: Decimal) => Decimal>> = {
  sin: (x) => x.sin(),
  cos: (x) => x.cos(),
  tan: (x) => x.tan(),
  cot: (x) => one.dividedBy(x.tan()),
  sec: (x) => one.dividedBy(x.cos()),
  csc: (x) => one.dividedBy(x.sin()),
  asin: (x) => x.asin(),
  acos: (x) => x.acos(),
  atan: (x) => x.atan(),
  sinh: (x) => x.sinh(),
  cosh: (x) => x.cosh(),
  tanh: (x) => x.tanh(),
  exp: (x) => x.exp(),
  ln: (x) => (x.lte(0) ? new Decimal(Number.NaN) : x.ln()),
}

function binomial(n: Value, k: Value, effort: Effort): Value | null {
  if (!isExact(n) || !isExact(k)) return null
  const count = wholeOf(k)
  if (count === null || count < 0n || count > 1000n) return null
  let product: Rational | null = integer(1n)
  for (let i = 0n; i < count && product !== null; i += 1n) {
    product = rational(product.num * (n.num - i * n.den), product.den * n.den * (i + 1n), effort)
  }
  return product
}

function negated({ num, den }: Rational): Rational {
  return { num: -num, den }
}

function decimal(value: Value): Decimal | null {
  if (!isExact(value)) return value
  // Not worth its digits: it would be out of bounds.
  if (Math.abs(bitsOf(value.num) - bitsOf(value.den)) > 160) return null
  return bounded(new Decimal(value.num.toString()).dividedBy(value.den.toString()))
}

function bounded(value: Decimal): Decimal | null {
  return value.isFinite() && value.abs().lt(largest) ? value : null
}
