import { type LosslessJson, parseLossless } from './lossless.ts'

/**
 * A text that is equal for two JSON values exactly when they mean the same: keys sorted (of duplicates the last wins),
 * numbers compared by value (`1.0`, `1` and `10e-1` are one; integers stay exact at any size).
 */
export function canonicalText(value: LosslessJson): string {
  switch (value.kind) {
    case 'number':
      return canonicalNumber(value.text)
    case 'string':
      return JSON.stringify(value.value)
    case 'array':
      return `[${value.items.map(canonicalText).join(',')}]`
    case 'object': {
      const members = new Map(value.members.map((member) => [member.key, member.value]))
      const sorted = [...members].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      return `{${sorted.map(([key, item]) => `${JSON.stringify(key)}:${canonicalText(item)}`).join(',')}}`
    }
    case 'boolean':
      return String(value.value)
    case 'null':
      return 'null'
  }
}

/** {@link canonicalText} of a JSON text, or the text itself where it is not JSON (a model may write anything). */
export function canonicalOrRaw(text: string): string {
  try {
    return canonicalText(parseLossless(text))
  } catch {
    return text
  }
}

/** Sign, digits without leading or trailing zeros, decimal exponent: exact, no floating point. */
function canonicalNumber(text: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text)
  // An exponent beyond all sense is compared as it is written.
  if (match === null || (match[4]?.length ?? 0) > 15) return text
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  if (digits === '') return '0'
  // A pattern for the end would be tried at every zero.
  let end = digits.length
  while (digits[end - 1] === '0') end -= 1
  const power = Number(exponent) + digits.length - end - fraction.length
  return `${sign}${digits.slice(0, end)}e${power}`
}
