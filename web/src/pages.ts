import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { read, ViewerError } from './api.ts'

/** Lines of one reply. */
const pageSize = 200

/** A part of a list as the viewer's API gives it. */
interface Part<Line> {
  readonly total: number
  readonly rows: readonly Line[]
  /** Where lines stand now that were asked for by id. */
  readonly places?: Readonly<Record<string, number>>
}

/** Keeps a list that changes in place. */
export interface Anchored<Line> {
  /** Ids of the lines that are to stay where the reader has them. */
  ids(rowAt: (index: number) => Line | undefined): readonly string[]
  /** Told where those stand now, before the new list is drawn. */
  moved(places: Readonly<Record<string, number>>): void
}

interface State<Line, Page> {
  readonly path: string
  readonly first: Page | null
  readonly parts: ReadonlyMap<number, readonly Line[]>
  readonly asked: ReadonlySet<number>
  readonly error: ViewerError | null
  /** Counts the times that the list was read anew; answers to older questions are left. */
  readonly turn: number
}

/**
 * A long list of which only the parts that come into sight are fetched. `path`: without `after` and `limit`. When `version` changes, the
 * parts in sight are read again and take the place of the old ones at once.
 */
export function usePages<Line, Page extends Part<Line>>(
  path: string,
  version: string | number = 0,
  anchored: Anchored<Line> | null = null,
) {
  const state = useSignal<State<Line, Page>>({
    path: '',
    first: null,
    parts: new Map(),
    asked: new Set(),
    error: null,
    turn: 0,
  })
  const sight = useRef({ from: 0, to: 1 })
  const partOf = (part: number, more = ''): Promise<Page> => {
    const separator = path.includes('?') ? '&' : '?'
    return read<Page>(
      `${path}${separator}after=${part * pageSize}&limit=${pageSize}${more}`,
      new AbortController().signal,
    )
  }
  const rowAt = (index: number): Line | undefined =>
    state.value.parts.get(Math.floor(index / pageSize))?.[index % pageSize]
  const ask = (part: number): void => {
    const before = state.value
    if (before.path !== path || before.asked.has(part)) return
    state.value = { ...before, asked: new Set([...before.asked, part]) }
    partOf(part).then(
      (page) => {
        const now = state.value
        if (now.path !== path || now.turn !== before.turn) return
        const parts = new Map([...now.parts, [part, page.rows]])
        state.value = { ...now, first: part === 0 || now.first === null ? page : now.first, parts }
      },
      (cause: unknown) => {
        if (state.value.path !== path) return
        const error = cause instanceof ViewerError ? cause : new ViewerError('INTERNAL', String(cause), '')
        state.value = { ...state.value, error }
      },
    )
  }
  useEffect(() => {
    // What was shown stays until the first part of the new list is there.
    const { first, turn } = state.value
    state.value = { path, first, parts: new Map(), asked: new Set(), error: null, turn: turn + 1 }
    ask(0)
  }, [path])
  useEffect(() => {
    if (state.value.path !== path || state.value.first === null) return
    let isOver = false
    const ids = anchored?.ids(rowAt) ?? []
    const renew = async (): Promise<void> => {
      const [first] = partsOf(sight.current)
      const asked = ids.length === 0 ? '' : `&places=${ids.join(',')}`
      const page = await partOf(first ?? 0, asked)
      // Where the lines in sight stand now decides which parts are in sight.
      const places = page.places ?? {}
      const [top] = ids
      const shift = top === undefined || places[top] === undefined ? 0 : places[top] - sight.current.from
      const wanted = partsOf({
        from: Math.max(0, sight.current.from + shift),
        to: Math.max(1, sight.current.to + shift),
      })
      const parts = new Map<number, readonly Line[]>()
      for (const part of wanted) parts.set(part, part === first ? page.rows : (await partOf(part)).rows)
      if (isOver || state.value.path !== path) return
      anchored?.moved(places)
      state.value = { path, first: page, parts, asked: new Set(wanted), error: null, turn: state.value.turn + 1 }
    }
    // Where it cannot be read, the pulse of the page says so.
    renew().catch(() => undefined)
    return () => (isOver = true)
  }, [version])
  return {
    first: state.value.first,
    error: state.value.error,
    rowAt,
    need: (from: number, to: number): void => {
      sight.current = { from, to }
      for (const part of partsOf({ from, to })) ask(part)
    },
  }
}

function partsOf({ from, to }: { readonly from: number; readonly to: number }): readonly number[] {
  const first = Math.floor(from / pageSize)
  const last = Math.floor(Math.max(from, to - 1) / pageSize)
  return Array.from({ length: last - first + 1 }, (_, at) => first + at)
}
