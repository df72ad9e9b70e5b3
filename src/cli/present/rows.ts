import type { Row } from '../../trajectory/index.ts'
import { type Paint } from './colour.ts'
import { maskBar } from './tokens.ts'
import { plural, shortId } from './units.ts'

/** The rows of a session at a glance: one bar and the counts of each. */
export function rowsText(rows: readonly Row[], paint: Paint): string {
  if (rows.length === 0) return paint('dim', 'no rows: no answer of this session has token ids')
  const lines = rows.map((row, index) => {
    const kinds = kindsOf(row)
    const count = (kind: 'prompt' | 'masked' | 'trained'): number => kinds.filter((one) => one === kind).length
    const leaf = row.id.split(':')[1] ?? row.id
    return [
      `row ${index}`,
      paint('name', shortId(leaf)),
      maskBar(kinds),
      `${plural(kinds.length, 'token')}: ${count('prompt')} context, ${count('trained')} trained, ${count('masked')} masked`,
    ].join('  ')
  })
  return [...lines, paint('dim', '░ context  ▓ trained  ▒ sampled and masked')].join('\n')
}

/** What each token of a row is. */
export function kindsOf(row: Row): ('prompt' | 'masked' | 'trained')[] {
  const kinds: ('prompt' | 'masked' | 'trained')[] = Array.from({ length: row.tokens.length }, () => 'prompt')
  for (const segment of row.segments) {
    for (let at = segment.start; at < segment.end; at += 1) {
      if (row.mask[at] === 1) kinds[at] = 'trained'
      else if (segment.origin === 'sampled') kinds[at] = 'masked'
    }
  }
  return kinds
}
