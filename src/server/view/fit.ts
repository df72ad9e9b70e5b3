/** Bytes that one reply of the viewer holds at most. */
export const mostReplyBytes = 500_000

/** What is left of a page when it does not fit: characters of each text, entries of each list or record. */
const measures = [
  { chars: 64_000, entries: 8000 },
  { chars: 16_000, entries: 2000 },
  { chars: 4000, entries: 500 },
  { chars: 1000, entries: 500 },
  { chars: 250, entries: 500 },
  { chars: 60, entries: 500 },
  { chars: 60, entries: 100 },
  { chars: 60, entries: 20 },
]

/**
 * The JSON text of a page that fits into a reply. One that is too large has its longest texts cut, each saying how much is missing, then its longest
 * lists; `shortened` says so. Lists that grow with what is recorded come in parts instead, and only hostile records get here.
 */
export function fitted(page: object): string {
  let text = JSON.stringify(page)
  for (const measure of measures) {
    if (Buffer.byteLength(text) <= mostReplyBytes) break
    text = JSON.stringify({ ...(cut(page, measure) as object), shortened: true })
  }
  return text
}

/** A part of a list: as many lines as were asked for and fit into a reply, at least one. */
export function partOf<T>(
  lines: readonly T[],
  { after, limit }: { readonly after: number; readonly limit: number },
): { readonly total: number; readonly rows: readonly T[]; readonly next: number | null } {
  const rows = fittingFrom(lines.slice(after, after + limit))
  const next = after + rows.length
  return { total: lines.length, rows, next: next < lines.length ? next : null }
}

/** The first of some lines, as many as fit into a reply beside what else it says; one at least. */
export function fittingFrom<T>(lines: readonly T[]): readonly T[] {
  let bytes = mostReplyBytes / 10
  const end = lines.findIndex((line) => (bytes += bytesOf(line) + 1) > mostReplyBytes)
  return end === -1 ? lines : lines.slice(0, Math.max(1, end))
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '')
}

function cut(value: unknown, measure: (typeof measures)[number]): unknown {
  const { chars, entries } = measure
  if (typeof value === 'string') {
    return value.length <= chars ? value : `${value.slice(0, chars)} … (${value.length - chars} more characters)`
  }
  if (Array.isArray(value)) return value.slice(0, entries).map((one) => cut(one, measure))
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).slice(0, entries)
  return Object.fromEntries(kept.map(([key, one]) => [key.slice(0, chars), cut(one, measure)]))
}
