import { number, Words } from './text.tsx'

const width = 300
const height = 90
const inset = 6

/** A curve over steps. A click leads to what the nearest step was made of; a gap is a value that nobody said. */
export function Chart(o: {
  readonly name: string
  /** What stands below the values, in order. */
  readonly places: readonly number[]
  readonly values: readonly (number | null)[]
  readonly onPick?: (place: number) => void
}) {
  const { places, values } = o
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return null
  const [least, most] = [Math.min(...known), Math.max(...known)]
  const [first = 0, last = 0] = [places[0], places.at(-1)]
  const x = (place: number): number =>
    last === first ? width / 2 : inset + ((place - first) / (last - first)) * (width - 2 * inset)
  const y = (value: number): number =>
    most === least ? height / 2 : height - inset - ((value - least) / (most - least)) * (height - 2 * inset)
  const newest = known.at(-1) ?? null
  const pick = (event: MouseEvent): void => {
    const box = event.currentTarget instanceof Element ? event.currentTarget.getBoundingClientRect() : null
    if (box === null || o.onPick === undefined) return
    const at = ((event.clientX - box.left) / box.width) * width
    const nearest = places.reduce(
      (best, place) => (Math.abs(x(place) - at) < Math.abs(x(best) - at) ? place : best),
      first,
    )
    o.onPick(nearest)
  }
  return (
    <figure class="chart">
      <figcaption>
        <Words text={o.name} /> <strong>{number(newest, 4)}</strong>
      </figcaption>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`from ${number(first)} to ${number(last)}: least ${number(least, 4)}, most ${number(most, 4)}, last ${number(newest, 4)}`}
        class={o.onPick === undefined ? undefined : 'picks'}
        onClick={pick}
      >
        <path d={pathOf(places, values, x, y)} />
        {single(values).map((at) => (
          <circle key={at} cx={x(places[at] ?? 0)} cy={y(values[at] ?? 0)} r={2} />
        ))}
      </svg>
      <p class="quiet">
        {number(least, 4)} to {number(most, 4)}
      </p>
    </figure>
  )
}

function pathOf(
  places: readonly number[],
  values: readonly (number | null)[],
  x: (place: number) => number,
  y: (value: number) => number,
): string {
  let isOpen = false
  const parts = values.map((value, at) => {
    if (value === null) {
      isOpen = false
      return ''
    }
    const command = isOpen ? 'L' : 'M'
    isOpen = true
    return `${command}${x(places[at] ?? 0).toFixed(1)} ${y(value).toFixed(1)}`
  })
  return parts.join('')
}

/** Values without a neighbour, which no line shows. */
function single(values: readonly (number | null)[]): readonly number[] {
  return values.flatMap((value, at) =>
    value !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null ? [at] : [],
  )
}
