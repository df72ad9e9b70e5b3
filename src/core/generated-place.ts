import { PaddockError } from './errors.ts'

/** Tasks of a generator by name: every seed at every level. Bounds are included. */
export interface GeneratedPlace {
  readonly name: string
  readonly seeds: readonly [number, number]
  readonly levels: readonly [number, number]
}

/** More tasks than that are loaded in parts. */
const mostTasks = 100_000

const range = String.raw`(\d{1,15})(?:\.\.(\d{1,15}))?`
const form = new RegExp(`^([a-z][a-z0-9-]*):${range}:${range}$`)

/**
 * What `<name>:<seed>:<level>` means, where seed and level may be ranges such as `0..99`; null: it is no such place. Throws `TASK_INVALID`
 * for a range that ends before it begins or is too large.
 */
export function generatedPlace(text: string): GeneratedPlace | null {
  const found = form.exec(text)
  if (found === null) return null
  const [, name = '', ...bounds] = found
  const bound = (at: number, or: number): number => (bounds[at] === undefined ? or : Number(bounds[at]))
  const place: GeneratedPlace = {
    name,
    seeds: [bound(0, 0), bound(1, bound(0, 0))],
    levels: [bound(2, 0), bound(3, bound(2, 0))],
  }
  const count = (place.seeds[1] - place.seeds[0] + 1) * (place.levels[1] - place.levels[0] + 1)
  const ends = place.seeds[1] >= place.seeds[0] && place.levels[1] >= place.levels[0]
  if (ends && count <= mostTasks) return place
  const what = ends
    ? `names ${count} tasks, and ${mostTasks} are the most at once`
    : 'has a range that ends before it begins'
  throw new PaddockError('TASK_INVALID', `${text} ${what}`, {
    data: { place: text },
    fix: 'Give <generator>:<seed>:<level>, such as records:0..99:1..3.',
  })
}

/** The text of a place, as {@link generatedPlace} reads it. */
export function placeText({ name, seeds, levels }: GeneratedPlace): string {
  const text = ([from, to]: readonly [number, number]): string => (from === to ? String(from) : `${from}..${to}`)
  return `${name}:${text(seeds)}:${text(levels)}`
}
