/** PostgreSQL's `text` has no character U+0000, and what is recorded may have it. It is kept under an escape that every text goes through. */

const mark = '\uF8E0'
const special = /[\0\uF8E0]/g
const escaped = /\uF8E0([01])/g

/** A parameter as PostgreSQL takes it. */
export function toStored(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(special, (found) => mark + (found === '\0' ? '0' : '1'))
  return Array.isArray(value) ? value.map(toStored) : value
}

/** Text as it was before {@link toStored}. */
export function fromStored(text: string): string {
  return text.includes(mark) ? text.replace(escaped, (_, digit) => (digit === '0' ? '\0' : mark)) : text
}
