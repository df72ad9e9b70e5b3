/** `digits / 10 ** scale`, exactly. */
export interface Decimal {
  readonly digits: bigint
  readonly scale: number
}

const numberPattern = /^([+-]?)(\d+(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d+))?$/
/** Longest text that is read as a number, and largest exponent: a double's digits end far below both. */
export const longestNumber = 5000
const largestExponent = 1000

/** Null for anything but one number, see {@link parseNumber}, and for one that is longer or larger than is compared. */
export function read(text: string): { readonly value: number; readonly exact: Decimal } | null {
  const trimmed = text.trim()
  if (trimmed.length > longestNumber) return null
  const percent = trimmed.endsWith('%')
  const body = (percent ? trimmed.slice(0, -1).trim() : trimmed).replace(/^\u2212/, '-')
  const [, sign = '', written = '', exponent = '0'] = numberPattern.exec(body) ?? []
  if (written === '' || Math.abs(Number(exponent)) > largestExponent) return null
  const plain = written.replaceAll(',', '')
  const value = Number(`${sign}${plain}e${exponent}`)
  if (!Number.isFinite(value)) return null
  const [before = '', behind = ''] = plain.split('.')
  const digits = BigInt(`${before}${behind}`)
  const exact = shifted(sign === '-' ? -digits : digits, Number(exponent) - behind.length - (percent ? 2 : 0))
  return { value: percent ? value / 100 : value, exact }
}

function shifted(digits: bigint, by: number): Decimal {
  return by >= 0 ? { digits: digits * 10n ** BigInt(by), scale: 0 } : { digits, scale: -by }
}

function at(scale: number, of: Decimal): bigint {
  return of.digits * 10n ** BigInt(scale - of.scale)
}

export function minus(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale)
  return { digits: at(scale, a) - at(scale, b), scale }
}

export function times(a: Decimal, b: Decimal): Decimal {
  return magnitude({ digits: a.digits * b.digits, scale: a.scale + b.scale })
}

export function magnitude({ digits, scale }: Decimal): Decimal {
  return { digits: digits < 0n ? -digits : digits, scale }
}

export function compare(a: Decimal, b: Decimal): number {
  const { digits } = minus(a, b)
  return digits < 0n ? -1 : digits > 0n ? 1 : 0
}

export function larger(a: Decimal, b: Decimal): Decimal {
  return compare(a, b) < 0 ? b : a
}

export function isWhole({ digits, scale }: Decimal): boolean {
  return digits % 10n ** BigInt(scale) === 0n
}

export function textOf({ digits, scale }: Decimal): string {
  const text = `${digits < 0n ? -digits : digits}`.padStart(scale + 1, '0')
  const behind = scale === 0 ? '' : text.slice(-scale).replace(/0+$/, '')
  const whole = scale === 0 ? text : text.slice(0, -scale)
  const all = `${digits < 0n ? '-' : ''}${whole}${behind === '' ? '' : `.${behind}`}`
  return all.length > 40 ? `${all.slice(0, 40)}…` : all
}

/**
 * Whether a double surely has the digits that its author wrote. An integer beyond 2^53 has only as far as 15 digits: the literal
 * 9007199254740993 is 9007199254740992 before anybody can look at it.
 */
export function keepsDigits(value: number): boolean {
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return Number.isFinite(value)
  return value.toExponential().replace(/e.*$/, '').replace(/\D/g, '').length <= 15
}
