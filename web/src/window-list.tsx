import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'

/** Rows above and below what is seen that are made too. */
const spare = 10

/**
 * A list of equal rows of which only those near the seen part are made. Chromium ends boxes at about 33 million pixels,
 * far beyond what a page of the viewer lists.
 */
export function WindowList(o: {
  readonly count: number
  readonly rowHeight: number
  readonly label: string
  /** The head row makes it a table, of whose cells `row` gives one line; without it is a list. */
  readonly head?: ComponentChildren
  /** The row that is to be in sight; null: none in particular. */
  readonly at: number | null
  readonly row: (index: number) => ComponentChildren
  /** Told which rows are made, so that they can be fetched. */
  readonly onRange?: (from: number, to: number) => void
  /** Rows that came in above what is seen, to be scrolled past once; it is set back to 0. */
  readonly shift?: { current: number }
}) {
  const box = useRef<HTMLDivElement>(null)
  /** True while rows came in above: the row that is to be in sight has another place, and nobody asked for it. */
  const held = useRef(false)
  useLayoutEffect(() => {
    if (box.current === null || o.shift === undefined || o.shift.current === 0) return
    // What is scrolled to must be there: the spacer has its new height by now.
    box.current.scrollTop += o.shift.current * o.rowHeight
    o.shift.current = 0
    held.current = true
  })
  const range = useSignal({ from: 0, to: 40 })
  const measure = (): void => {
    const element = box.current
    if (element === null) return
    const from = Math.max(0, Math.floor(element.scrollTop / o.rowHeight) - spare)
    const to = Math.ceil((element.scrollTop + element.clientHeight) / o.rowHeight) + spare
    if (from !== range.value.from || to !== range.value.to) range.value = { from, to }
  }
  useLayoutEffect(measure)
  useEffect(() => {
    addEventListener('resize', measure)
    return () => removeEventListener('resize', measure)
  }, [])
  useEffect(() => {
    const element = box.current
    if (element === null || o.at === null || held.current) return
    const top = o.at * o.rowHeight
    if (top < element.scrollTop) element.scrollTop = top
    else if (top + o.rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = top + o.rowHeight - element.clientHeight
  }, [o.at])
  useEffect(() => {
    held.current = false
  })
  const from = Math.min(range.value.from, o.count)
  const to = Math.min(range.value.to, o.count)
  useEffect(() => o.onRange?.(from, to))
  const isTable = o.head !== undefined
  const rows = []
  for (let index = from; index < to; index += 1) {
    const place = isTable
      ? { role: 'row' as const, 'aria-rowindex': index + 2 }
      : { role: 'listitem' as const, 'aria-posinset': index + 1, 'aria-setsize': o.count }
    rows.push(
      <div key={index} class="row" style={{ height: `${o.rowHeight}px` }} {...place}>
        {o.row(index)}
      </div>,
    )
  }
  const list = (
    <div
      class="window"
      ref={box}
      onScroll={measure}
      tabIndex={0}
      style={{ height: `min(70vh, ${o.count * o.rowHeight + 2}px)` }}
      {...(isTable ? { role: 'rowgroup' as const } : { role: 'list' as const, 'aria-label': o.label })}
    >
      <div class="spacer" style={{ height: `${o.count * o.rowHeight}px` }}>
        <div class="made" style={{ transform: `translateY(${from * o.rowHeight}px)` }}>
          {rows}
        </div>
      </div>
    </div>
  )
  if (!isTable) return list
  return (
    <div role="table" aria-label={o.label} aria-rowcount={o.count + 1}>
      <div role="rowgroup">{o.head}</div>
      {list}
    </div>
  )
}
