import { Decimal as Base } from 'decimal.js'
import { type FunctionName, isEven, isOdd } from './names.ts'
import {
  type Effort,
  exactRoot,
  factorial,
  floor,
  gcd,
  integer,
  integerPower,
  NotUnderstood,
  one,
  over,
  plus,
  type Rational,
  rational,
  times,
  zero,
} from './rational.ts'

/** 110 digits, of which 90 are compared: what is lost on the way lies far below. */
export const Decimal = Base.clone({ precision: 110, maxE: 20_000, minE: -20_000, defaults: true })
export type Decimal = InstanceType<typeof Decimal>
const tolerance = new Decimal('1e-90')
const lost = new Decimal('1e-100')
const pi = Decimal.acos(-1)
const e = Decimal.exp(1)

/** Bounds: what has more terms, atoms or powers is compared as text. */
const mostTerms = 400
const mostAtoms = 60
const largestPower = 100_000
const largestExpansion = 200

/**
 * What a polynomial is made of: a variable, a constant that is no fraction, or a function of canonical arguments. Two atoms are
 * one when their names are and their arguments are equal: no identity across functions is assumed.
 */
interface Atom {
  readonly name: string
  readonly of: readonly Fraction[]
  /** Of a constant, by 110 digits. */
  readonly value: Decimal | null
  /** `atom ** degree` is `base`: of roots, and of i. */
  readonly relation: { readonly degree: number; readonly base: Polynomial } | null
}

interface Term {
  readonly coefficient: Rational
  /** Atoms by index with their powers, sorted. */
  readonly factors: readonly (readonly [number, number])[]
}

type Polynomial = ReadonlyMap<string, Term>

/** One polynomial over another; the second is not 0. */
export interface Fraction {
  readonly num: Polynomial
  readonly den: Polynomial
}

/** Rational functions over atoms, with exact coefficients, for one comparison. */
export class Field {
  readonly #atoms: Atom[] = []
  readonly #effort: Effort

  constructor(effort: Effort) {
    this.#effort = effort
  }

  number(of: Rational): Fraction {
    return { num: constant(of), den: constant(one) }
  }

  /** A letter, or a function of which nothing is known, of its arguments. */
  variable(name: string, of: readonly Fraction[] = []): Fraction {
    return this.#atom(name, of, null)
  }

  pi(): Fraction {
    return this.#atom('pi', [], pi)
  }

  e(): Fraction {
    return this.#atom('e', [], e)
  }

  imaginary(): Fraction {
    return this.#atom('i', [], null, { degree: 2, base: constant(integer(-1n)) })
  }

  sum(a: Fraction, b: Fraction): Fraction {
    if (sameTerms(a.den, b.den)) return this.#fraction(this.#plus(a.num, b.num), a.den)
    return this.#fraction(this.#plus(this.#times(a.num, b.den), this.#times(b.num, a.den)), this.#times(a.den, b.den))
  }

  negative(a: Fraction): Fraction {
    return this.scaled(a, integer(-1n))
  }

  difference(a: Fraction, b: Fraction): Fraction {
    return this.sum(a, this.negative(b))
  }

  product(a: Fraction, b: Fraction): Fraction {
    return this.#fraction(this.#times(a.num, b.num), this.#times(a.den, b.den))
  }

  /** Throws {@link NotUnderstood} where `b` is 0. */
  quotient(a: Fraction, b: Fraction): Fraction {
    if (this.#isZero(b.num)) throw new NotUnderstood()
    return this.#fraction(this.#times(a.num, b.den), this.#times(a.den, b.num))
  }

  scaled(a: Fraction, by: Rational): Fraction {
    return { num: this.#times(a.num, constant(by)), den: a.den }
  }

  same(a: Fraction, b: Fraction): boolean {
    return this.isZero(this.difference(a, b))
  }

  isZero(a: Fraction): boolean {
    return this.#isZero(a.num)
  }

  /** Whether one is the other times a constant that is not 0. */
  proportional(a: Fraction, b: Fraction): boolean {
    const [p, q] = [this.#times(a.num, b.den), this.#times(b.num, a.den)]
    if (this.#isZero(p) || this.#isZero(q)) return false
    for (const [key, group] of this.#groups(p)) {
      const [x, y] = [asPolynomial(group), asPolynomial(this.#groups(q).get(key) ?? [])]
      if (this.#isZero(x)) continue
      if (this.#isZero(y)) return false
      return this.#isZero(this.#plus(this.#times(p, y), this.#times(this.#times(q, x), constant(integer(-1n)))))
    }
    return false
  }

  /** The fraction that it is by its digits; null for anything else. */
  rationalOf({ num, den }: Fraction): Rational | null {
    const [top, bottom] = [constantOf(num), constantOf(den)]
    return top === null || bottom === null ? null : over(top, bottom)
  }

  /** The value of a real constant; null where there are letters. */
  valueOf({ num, den }: Fraction): Decimal | null {
    const [top, bottom] = [this.#valueOf(num), this.#valueOf(den)]
    return top === null || bottom === null ? null : top.dividedBy(bottom)
  }

  /** Of `3x - 6 = 0` that x is 2, and the sign of the 3. Null for anything but one variable, once, with constants. */
  solved({ num, den }: Fraction): { readonly name: string; readonly at: Decimal; readonly sign: number } | null {
    const below = this.#valueOf(den)
    const groups = [...this.#groups(num)]
    const [group, ...more] = groups.filter(([key]) => key !== '').map(([, terms]) => terms)
    const [factor, ...others] = group?.[0]?.factors.filter(([index]) => this.#isFree(index)) ?? []
    const [at, power] = factor ?? [-1, 0]
    const atom = this.#atoms[at]
    if (below === null || group === undefined || more.length > 0 || power !== 1 || others.length > 0) return null
    if (atom === undefined || atom.of.length > 0 || atom.name === 'i') return null
    const slope = this.#valueOf(asPolynomial(group.map((term) => without(term, at))))
    const rest = this.#valueOf(asPolynomial(groups.find(([key]) => key === '')?.[1] ?? []))
    if (slope === null || rest === null || slope.isZero()) return null
    return { name: atom.name, at: rest.negated().dividedBy(slope), sign: slope.times(below).isNegative() ? -1 : 1 }
  }

  /**
   * `base ** exponent`. Laws that hold for every base but 0: sums of exponents are products, integer factors are powers, and
   * positive constants leave a base. Others are not assumed: `\sqrt{x^2}` is not x.
   */
  power(base: Fraction, exponent: Fraction): Fraction {
    const exact = this.rationalOf(exponent)
    if (exact?.den === 1n) return this.#integerPower(base, exact.num)
    if (this.isZero(base)) throw new NotUnderstood()
    if (exact !== null) return this.#rationalPower(base, exact)
    let product = this.number(one)
    const below = constantOf(exponent.den)
    for (const { coefficient, factors } of exponent.num.values()) {
      const by = over(coefficient, below ?? one)
      const single = { num: asPolynomial([{ coefficient: rational(1n, by.den), factors }]), den: exponent.den }
      const part =
        below !== null && factors.length === 0
          ? this.power(base, this.number(by))
          : this.#symbolicPower(base, below === null ? single : { ...single, den: constant(one) }, by.num)
      product = this.product(product, part)
    }
    return product
  }

  /** The root of a degree; of a negative number with an odd one the real root. */
  root(of: Fraction, degree: Fraction): Fraction {
    const [exact, by] = [this.rationalOf(of), this.rationalOf(degree)]
    if (by === null || by.den !== 1n || by.num < 2n) throw new NotUnderstood()
    if (exact !== null && exact.num < 0n && by.num % 2n === 1n)
      return this.negative(this.root(this.negative(of), degree))
    return this.isZero(of) ? this.number(zero) : this.#rationalPower(of, { num: 1n, den: by.num })
  }

  /** A function of its arguments. */
  call(name: FunctionName, of: readonly Fraction[]): Fraction {
    const [x = this.number(zero), second] = of
    const defined = definitions[name]?.(this, x, second)
    if (defined !== undefined) return defined
    if (name === 'factorial') return this.#factorial(x)
    if (name === 'binomial') return this.#binomial(x, second ?? x)
    if (name === 'floor') return this.#floor(x)
    return name === 'abs' ? this.#absolute(x) : this.#called(name, x)
  }

  #called(name: FunctionName, x: Fraction): Fraction {
    const value = this.valueOf(x)
    if (value === null) return this.#withParity(name, x)
    this.#effort.spend(1500)
    const found = plain[name]?.(value)
    if (found?.isFinite() !== true || (name === 'ln' && value.lte(0))) throw new NotUnderstood()
    // At a zero of the function, as the sine of pi; where the number itself is as small, so is the value.
    const isNothing = found.abs().lt(lost) && (name === 'ln' || value.abs().gt(lost))
    return isNothing || found.isZero() ? this.number(zero) : this.#atom(name, [x], found)
  }

  /** An even or odd function of the negative of what there is already. */
  #withParity(name: FunctionName, x: Fraction): Fraction {
    if (isOdd(name) || isEven(name)) {
      const turned = this.negative(x)
      const known = this.#atoms.some((atom) => atom.name === name && atom.of.every((one) => this.same(one, turned)))
      if (known) return isOdd(name) ? this.negative(this.#atom(name, [turned], null)) : this.#atom(name, [turned], null)
    }
    return this.#atom(name, [x], null)
  }

  #absolute(x: Fraction): Fraction {
    const value = this.valueOf(x)
    if (value !== null) return value.isNegative() ? this.negative(x) : x
    const content = over(contentOf(x.num), contentOf(x.den))
    return this.scaled(this.#withParity('abs', this.scaled(x, over(one, content))), content)
  }

  #floor(x: Fraction): Fraction {
    const [exact, value] = [this.rationalOf(x), this.valueOf(x)]
    if (exact !== null) return this.number(integer(floor(exact)))
    if (value === null) return this.#atom('floor', [x], null)
    // So near to an integer that its digits do not say on which side.
    if (value.minus(value.round()).abs().lt(lost) || value.abs().gt('1e20')) throw new NotUnderstood()
    return this.number(integer(BigInt(value.floor().toFixed())))
  }

  /** Of an argument that differs by an integer from that of a factorial that there is, by that one: `n!` is `n(n-1)!`. */
  #factorial(x: Fraction): Fraction {
    const exact = this.rationalOf(x)
    if (exact !== null) return this.number(factorial(exact))
    for (const { name, of } of this.#atoms.slice()) {
      const [other] = of
      const apart = name === 'factorial' && other !== undefined ? this.rationalOf(this.difference(x, other)) : null
      if (other === undefined || apart === null || apart.den !== 1n || apart.num === 0n) continue
      const size = Number(apart.num < 0n ? -apart.num : apart.num)
      if (size > 20) continue
      const larger = apart.num > 0n ? x : other
      const between = this.#falling(larger, size)
      const known = this.#atom('factorial', [other], null)
      return apart.num > 0n ? this.product(known, between) : this.quotient(known, between)
    }
    return this.#atom('factorial', [x], null)
  }

  #falling(from: Fraction, count: number): Fraction {
    let product = this.number(one)
    for (let i = 0; i < count; i += 1) product = this.product(product, this.sum(from, this.number(integer(-i))))
    return product
  }

  #binomial(n: Fraction, k: Fraction): Fraction {
    const [top, below] = [this.rationalOf(n), this.rationalOf(k)]
    const count = below !== null && below.den === 1n && below.num >= 0n ? Number(below.num) : null
    if (count !== null && count <= 1000 && (top !== null || count <= 12))
      return this.scaled(this.#falling(n, count), over(one, factorial(integer(count))))
    if (top !== null && below !== null) throw new NotUnderstood()
    const apart = this.#factorial(this.difference(n, k))
    return this.quotient(this.#factorial(n), this.product(this.#factorial(k), apart))
  }

  #integerPower(base: Fraction, exponent: bigint): Fraction {
    const exact = this.rationalOf(base)
    if (exact !== null) return this.number(integerPower(exact, exponent))
    if (exponent < 0n) return this.#integerPower(this.quotient(this.number(one), base), -exponent)
    const isMonomial = base.num.size === 1 && base.den.size === 1
    if (exponent > (isMonomial ? largestPower : largestExpansion)) throw new NotUnderstood()
    let [product, square, left] = [this.number(one), base, exponent]
    for (; left > 0n; left /= 2n) {
      if (left % 2n === 1n) product = this.product(product, square)
      if (left > 1n) square = this.product(square, square)
    }
    return product
  }

  #rationalPower(base: Fraction, { num, den }: Rational): Fraction {
    const degree = Number(den)
    if (degree > 100) throw new NotUnderstood()
    const whole = floor({ num, den })
    const root = this.#plainRoot(base, degree)
    return this.product(this.#integerPower(base, whole), this.#integerPower(root, num - whole * den))
  }

  #plainRoot(base: Fraction, degree: number): Fraction {
    const exact = this.rationalOf(base)
    if (exact !== null && exact.num < 0n) {
      if (degree !== 2) throw new NotUnderstood()
      return this.product(this.imaginary(), this.#plainRoot(this.negative(base), 2))
    }
    if (exact !== null) {
      const root = exactRoot(exact, degree)
      if (root !== null) return this.number(root)
      // The root of an integer over an integer.
      const top = this.number(integer(exact.num * exact.den ** BigInt(degree - 1)))
      return this.scaled(this.#rootAtom(top, degree, 300), rational(1n, exact.den))
    }
    if (this.valueOf(base) !== null) return this.#rootAtom(base, degree, 1500)
    const content = over(contentOf(base.num), contentOf(base.den))
    const inner = this.scaled(base, over(one, content))
    return this.product(this.#plainRoot(this.number(content), degree), this.#rootAtom(inner, degree, 0))
  }

  #rootAtom(of: Fraction, degree: number, effort: number): Fraction {
    const value = this.valueOf(of)
    if (value?.lte(0) === true) throw new NotUnderstood()
    this.#effort.spend(effort)
    const below = constantOf(of.den)
    const relation = below === null ? null : { degree, base: this.#times(of.num, constant(over(one, below))) }
    return this.#atom(`root ${degree}`, [of], value === null ? null : rootOf(value, degree), relation)
  }

  #symbolicPower(base: Fraction, exponent: Fraction, by: bigint): Fraction {
    const exact = this.rationalOf(base)
    if (exact !== null) {
      let product = this.number(one)
      for (const [prime, count] of factorsOf(exact)) {
        product = this.product(
          product,
          this.#integerPower(this.#powerAtom(this.number(prime), exponent), by * BigInt(count)),
        )
      }
      return product
    }
    const content = this.valueOf(base) === null ? over(contentOf(base.num), contentOf(base.den)) : one
    const inner = this.#integerPower(this.#powerAtom(this.scaled(base, over(one, content)), exponent), by)
    return content.num === content.den
      ? inner
      : this.product(this.#symbolicPower(this.number(content), exponent, by), inner)
  }

  #powerAtom(base: Fraction, exponent: Fraction): Fraction {
    const [x, y] = [this.valueOf(base), this.valueOf(exponent)]
    if (x === null || y === null) return this.#atom('power', [base, exponent], null)
    if (x.lte(0) || y.abs().gt(2000)) throw new NotUnderstood()
    this.#effort.spend(3000)
    return this.#atom('power', [base, exponent], x.pow(y))
  }

  #atom(name: string, of: readonly Fraction[], value: Decimal | null, relation: Atom['relation'] = null): Fraction {
    const isKnown = (atom: Atom) =>
      atom.name === name && atom.of.length === of.length && atom.of.every((one, i) => this.same(one, of[i] ?? one))
    let at = this.#atoms.findIndex(isKnown)
    if (at < 0) {
      if (this.#atoms.length >= mostAtoms) throw new NotUnderstood()
      at = this.#atoms.push({ name, of, value, relation }) - 1
    }
    return { num: asPolynomial([{ coefficient: one, factors: [[at, 1]] }]), den: constant(one) }
  }

  #fraction(num: Polynomial, den: Polynomial): Fraction {
    const below = constantOf(den)
    if (below === null || (below.num === 1n && below.den === 1n)) return { num, den }
    return { num: this.#times(num, constant(over(one, below))), den: constant(one) }
  }

  #plus(a: Polynomial, b: Polynomial): Polynomial {
    const found = new Map(a)
    for (const term of b.values()) this.#add(found, term)
    return found
  }

  #add(to: Map<string, Term>, term: Term): void {
    this.#effort.spend(2 + costOf(term.coefficient))
    const key = term.factors.join(' ')
    const before = to.get(key)
    const coefficient = before === undefined ? term.coefficient : plus(before.coefficient, term.coefficient)
    if (coefficient.num === 0n) to.delete(key)
    else to.set(key, { coefficient, factors: term.factors })
    if (to.size > mostTerms) throw new NotUnderstood()
  }

  #times(a: Polynomial, b: Polynomial): Polynomial {
    const found = new Map<string, Term>()
    for (const x of a.values()) {
      for (const y of b.values()) {
        this.#effort.spend(3 + costOf(x.coefficient) + costOf(y.coefficient))
        const coefficient = times(x.coefficient, y.coefficient)
        for (const term of this.#reduced({ coefficient, factors: joined(x.factors, y.factors) })) this.#add(found, term)
      }
    }
    return found
  }

  /** Roots to their degree are what stands under them. */
  #reduced(term: Term): Iterable<Term> {
    for (const [at, power] of term.factors) {
      const relation = this.#atoms[at]?.relation ?? null
      if (relation === null || power < relation.degree) continue
      const count = Math.floor(power / relation.degree)
      const factors = term.factors.flatMap(([index, by]) =>
        index !== at
          ? [[index, by] as const]
          : by % relation.degree === 0
            ? []
            : [[index, by % relation.degree] as const],
      )
      if (count > largestExpansion) throw new NotUnderstood()
      let product: Polynomial = asPolynomial([{ coefficient: term.coefficient, factors }])
      for (let i = 0; i < count; i += 1) product = this.#times(product, relation.base)
      return product.values()
    }
    return [term]
  }

  /** By digits where all is exact; else what cancels out to 90 digits is 0, for each product of letters. */
  #isZero(of: Polynomial): boolean {
    return [...this.#groups(of).values()].every((terms) => {
      if (terms.length === 1) return false
      let [sum, size] = [new Decimal(0), new Decimal(0)]
      for (const term of terms) {
        const value = this.#termValue(term)
        sum = sum.plus(value)
        size = size.plus(value.abs())
      }
      return sum.abs().lte(size.times(tolerance))
    })
  }

  /** Terms by the letters in them: two constants are one number. */
  #groups(of: Polynomial): ReadonlyMap<string, readonly Term[]> {
    return Map.groupBy(of.values(), ({ factors }) => factors.filter(([at]) => this.#isFree(at)).join(' '))
  }

  #isFree(at: number): boolean {
    return this.#atoms[at]?.value === null
  }

  #termValue({ coefficient, factors }: Term): Decimal {
    this.#effort.spend(20)
    let value = new Decimal(coefficient.num.toString()).dividedBy(coefficient.den.toString())
    for (const [at, power] of factors) {
      if (Math.abs(power) > 5000) throw new NotUnderstood()
      const factor = this.#atoms[at]?.value ?? null
      if (factor !== null) value = value.times(power === 1 ? factor : factor.pow(power))
      if (factor !== null && power !== 1) this.#effort.spend(60)
    }
    if (!value.isFinite() || (value.isZero() && coefficient.num !== 0n)) throw new NotUnderstood()
    return value
  }

  #valueOf(of: Polynomial): Decimal | null {
    const groups = this.#groups(of)
    if (groups.size === 0) return new Decimal(0)
    const terms = groups.size === 1 ? groups.get('') : undefined
    if (terms === undefined) return null
    if (this.#isZero(of)) return new Decimal(0)
    return terms.reduce((sum, term) => sum.plus(this.#termValue(term)), new Decimal(0))
  }
}

/** Whether two constants agree to 90 digits. */
export function sameDecimal(a: Decimal, b: Decimal): boolean {
  if (!a.isFinite() || !b.isFinite()) return a.eq(b)
  return a.minus(b).abs().lte(Decimal.max(a.abs(), b.abs()).times(tolerance))
}

/** Functions that are others. */
const definitions: Readonly<Record<FunctionName, (field: Field, x: Fraction, second?: Fraction) => Fraction>> = {
  root: (field, x, degree = field.number(integer(2n))) => field.root(x, degree),
  exp: (field, x) => field.power(field.e(), x),
  log: (field, x, base = field.number(integer(10n))) => field.quotient(field.call('ln', [x]), field.call('ln', [base])),
  sec: (field, x) => field.quotient(field.number(one), field.call('cos', [x])),
  csc: (field, x) => field.quotient(field.number(one), field.call('sin', [x])),
  tan: (field, x) => field.quotient(field.call('sin', [x]), field.call('cos', [x])),
  cot: (field, x) => field.quotient(field.call('cos', [x]), field.call('sin', [x])),
  ceil: (field, x) => field.negative(field.call('floor', [field.negative(x)])),
}

const plain: Readonly<Record<FunctionName, (x: Decimal) => Decimal>> = {
  sin: (x) => x.sin(),
  cos: (x) => x.cos(),
  asin: (x) => x.asin(),
  acos: (x) => x.acos(),
  atan: (x) => x.atan(),
  sinh: (x) => x.sinh(),
  cosh: (x) => x.cosh(),
  tanh: (x) => x.tanh(),
  ln: (x) => x.ln(),
}

const short = 1n << 256n

/** What to bring a fraction to lowest terms costs, by the square of its length. */
function costOf({ num, den }: Rational): number {
  if (num < short && num > -short && den < short) return 0
  const digits = num.toString(16).length + den.toString(16).length
  return den === 1n ? digits / 8 : (digits * digits) / 300
}

function rootOf(of: Decimal, degree: number): Decimal {
  if (degree === 2) return of.sqrt()
  return degree === 3 ? of.cbrt() : of.pow(new Decimal(1).dividedBy(degree))
}

function constant(of: Rational): Polynomial {
  return of.num === 0n ? new Map() : new Map([['', { coefficient: of, factors: [] }]])
}

function constantOf(of: Polynomial): Rational | null {
  if (of.size === 0) return zero
  return of.size === 1 ? (of.get('')?.coefficient ?? null) : null
}

function asPolynomial(terms: readonly Term[]): Polynomial {
  return new Map(terms.map((term) => [term.factors.join(' '), term]))
}

function without(term: Term, at: number): Term {
  return { ...term, factors: term.factors.filter(([index]) => index !== at) }
}

function sameTerms(a: Polynomial, b: Polynomial): boolean {
  if (a.size !== b.size) return false
  return [...a].every(([key, { coefficient }]) => {
    const other = b.get(key)?.coefficient
    return other !== undefined && other.num === coefficient.num && other.den === coefficient.den
  })
}

function joined(a: Term['factors'], b: Term['factors']): Term['factors'] {
  const found = new Map(a)
  for (const [at, power] of b) {
    const sum = (found.get(at) ?? 0) + power
    if (sum > largestPower) throw new NotUnderstood()
    found.set(at, sum)
  }
  return [...found].toSorted(([x], [y]) => x - y)
}

/** The largest positive number by which all coefficients are integers without a common divisor, inverted. */
function contentOf(of: Polynomial): Rational {
  let [top, bottom] = [0n, 1n]
  for (const { coefficient } of of.values()) {
    top = gcd(top, coefficient.num)
    bottom = (bottom * coefficient.den) / gcd(bottom, coefficient.den)
  }
  return top === 0n ? one : rational(top, bottom)
}

/** Small primes with their powers, what is left of the number as one more, and -1. */
function factorsOf({ num, den }: Rational): readonly (readonly [Rational, number])[] {
  const found = new Map<bigint, number>()
  for (const [side, by] of [[num < 0n ? -num : num, 1] as const, [den, -1] as const]) {
    let left = side
    for (let prime = 2n; prime < 100n && left > 1n; prime += 1n) {
      for (; left % prime === 0n; left /= prime) found.set(prime, (found.get(prime) ?? 0) + by)
    }
    if (left > 1n) found.set(left, (found.get(left) ?? 0) + by)
  }
  if (num < 0n) found.set(-1n, 1)
  return [...found].filter(([, count]) => count !== 0).map(([prime, count]) => [integer(prime), count] as const)
}
