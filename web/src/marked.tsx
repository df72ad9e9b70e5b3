import { place } from './router.ts'
import { visible } from './text.tsx'

/** Marks of one text; what stands behind them is plain. */
const mostMarks = 200

/** Recorded text with the words marked that a search led here for (`find` in the address). */
export function Marked({ text }: { readonly text: string }) {
  const find = place.value.query['find'] ?? ''
  if (find.length < 2) return <>{visible(text)}</>
  const words = new RegExp(find.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`), 'giu')
  const parts = []
  let at = 0
  for (const match of text.matchAll(words)) {
    if (parts.length >= 2 * mostMarks) break
    parts.push(visible(text.slice(at, match.index)), <mark key={match.index}>{visible(match[0])}</mark>)
    at = match.index + match[0].length
  }
  return (
    <>
      {parts}
      {visible(text.slice(at))}
    </>
  )
}
