import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { read, ViewerError } from './api.ts'

/** Lines of one reply. */
const pageSize = 200

/** A part of a list as the viewer's API gives it. */
interface Part<Line> {
  readonly total: number
  readonly rows: readonly Line[]
}

/** A long list of which only the parts that come into sight are fetched. `path`: without `after` and `limit`. */
export function usePages<Line, Page extends Part<Line>>(path: string) {
  const state = useSignal<{
    readonly path: string
    readonly first: Page | null
    readonly parts: ReadonlyMap<number, readonly Line[]>
    readonly asked: ReadonlySet<number>
    readonly error: ViewerError | null
  }>({ path: '', first: null, parts: new Map(), asked: new Set(), error: null })
  const ask = (part: number): void => {
    const before = state.value
    if (before.path !== path || before.asked.has(part)) return
    state.value = { ...before, asked: new Set([...before.asked, part]) }
    const separator = path.includes('?') ? '&' : '?'
    read<Page>(`${path}${separator}after=${part * pageSize}&limit=${pageSize}`, new AbortController().signal).then(
      (page) => {
        const now = state.value
        if (now.path !== path) return
        const parts = new Map([...now.parts, [part, page.rows]])
        state.value = { ...now, first: part === 0 ? page : now.first, parts }
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
    state.value = { path, first: state.value.first, parts: new Map(), asked: new Set(), error: null }
    ask(0)
  }, [path])
  return {
    first: state.value.first,
    error: state.value.error,
    rowAt: (index: number): Line | undefined => state.value.parts.get(Math.floor(index / pageSize))?.[index % pageSize],
    need: (from: number, to: number): void => {
      for (let part = Math.floor(from / pageSize); part <= Math.floor(Math.max(from, to - 1) / pageSize); part += 1) {
        ask(part)
      }
    },
  }
}
