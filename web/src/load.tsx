import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { read, ViewerError } from './api.ts'

interface Loaded<T> {
  readonly path: string
  readonly value: T | null
  readonly error: ViewerError | null
}

/**
 * Reads a path and reads it again when it or `again` changes; the last value stays until the next one is there, and where the same
 * path cannot be read again.
 */
export function useRead<T>(
  path: string | null,
  reader: (path: string, signal: AbortSignal) => Promise<T> = read<T>,
  again: string | number = '',
): Loaded<T> {
  const state = useSignal<Loaded<T>>({ path: '', value: null, error: null })
  useEffect(() => {
    if (path === null) return
    const abort = new AbortController()
    reader(path, abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) state.value = { path, value, error: null }
      },
      (error: unknown) => {
        if (abort.signal.aborted) return
        const known = error instanceof ViewerError ? error : new ViewerError('INTERNAL', String(error), '')
        if (state.value.path === path && state.value.value !== null) return
        state.value = { path, value: null, error: known }
      },
    )
    return () => abort.abort()
  }, [path, again])
  return state.value
}

/** The content once it is read, or what is wrong with one way on. */
export function Shown<T>(o: { readonly of: Loaded<T>; readonly children: (value: T) => ComponentChildren }) {
  const { error, value } = o.of
  if (error !== null) return <Failure error={error} />
  if (value === null) return <p class="quiet">Reading …</p>
  const isShortened = typeof value === 'object' && 'shortened' in value
  return (
    <>
      {isShortened ? <p class="warn">This page is too large: long texts and lists of it are cut.</p> : null}
      {o.children(value)}
    </>
  )
}

/** One error: code, what is wrong, the fix. */
export function Failure({ error }: { readonly error: ViewerError }) {
  return (
    <div class="failure" role="alert">
      <strong>{error.code}</strong> {error.message} {error.fix === '' ? '' : `Fix: ${error.fix}`}
    </div>
  )
}

/** Calls `onKey` for keys pressed outside of fields. */
export function useKeys(onKey: (key: string) => boolean): void {
  useEffect(() => {
    const listener = (event: KeyboardEvent): void => {
      if (event.metaKey || event.ctrlKey || event.altKey) return
      if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return
      if (onKey(event.key)) event.preventDefault()
    }
    addEventListener('keydown', listener)
    return () => removeEventListener('keydown', listener)
  })
}
