/** Recorded text is data: it is shown as text, with what would hide or reorder it made visible. */

// Control characters but tab and line feed, format characters (bidirectional marks and isolates, zero width), and line
// separators: all that a reader cannot see (Unicode 16, general categories Cc, Cf, Zl, Zp).
const hidden = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Text with invisible characters as `\u{…}`. */
export function visible(text: string): string {
  return text.replaceAll(hidden, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`)
}

/** Recorded text in a line. */
export function Words({ text }: { readonly text: string }) {
  return <bdi>{visible(text)}</bdi>
}

/** The tail of an id, which tells ids of one run apart. */
export function shortId(id: string): string {
  return id.replaceAll('-', '').slice(-8)
}

/** A number for people. */
export function number(value: number | null, digits = 2): string {
  return value === null ? '–' : Number.isInteger(value) ? value.toLocaleString('en') : value.toFixed(digits)
}

/** The time between two points for people. */
export function duration(from: number | null, to: number | null): string {
  return from === null || to === null ? '–' : span(to - from)
}

/** A duration for people. */
export function span(ms: number): string {
  const seconds = ms / 1000
  if (seconds < 1) return `${Math.round(ms)} ms`
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`
}

/** A point in time for people, in the reader's zone. */
export function moment(at: number | null): string {
  return at === null ? '–' : new Date(at).toLocaleString('sv')
}
