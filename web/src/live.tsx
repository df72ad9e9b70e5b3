import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { read, ViewerError } from './api.ts'

/** How often a page that is looked at asks whether there is more. */
const everyMs = 2000
/** How often it asks while a run is still being read. */
const soonMs = 250

/** What a page that follows knows. */
export interface Pulse<T> {
  readonly value: T | null
  /** When the last answer came. */
  readonly at: number | null
  /** Why there is no newer one; null while answers come. */
  readonly trouble: ViewerError | null
}

/** Asks a small question again and again, while the page is looked at. `isSoon`: the next answer is worth asking for at once. */
export function usePulse<T>(path: string, isSoon: (value: T) => boolean = () => false): Pulse<T> {
  const state = useSignal<Pulse<T>>({ value: null, at: null, trouble: null })
  useEffect(() => {
    const abort = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const ask = async (): Promise<void> => {
      clearTimeout(timer)
      if (document.hidden) return
      let next = everyMs
      try {
        const value = await read<T>(path, abort.signal)
        if (abort.signal.aborted) return
        state.value = { value, at: Date.now(), trouble: null }
        if (isSoon(value)) next = soonMs
      } catch (error) {
        if (abort.signal.aborted) return
        const trouble = error instanceof ViewerError ? error : new ViewerError('INTERNAL', String(error), '')
        state.value = { ...state.value, trouble }
      }
      clearTimeout(timer)
      timer = setTimeout(() => void ask(), next)
    }
    const look = (): void => void ask()
    document.addEventListener('visibilitychange', look)
    addEventListener('online', look)
    void ask()
    return () => {
      abort.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', look)
      removeEventListener('online', look)
    }
  }, [path])
  return state.value
}

/** Whether what is shown is what there is, in words. */
export function LiveState({ pulse, going }: { readonly pulse: Pulse<unknown>; readonly going: string }) {
  const { at, trouble } = pulse
  if (trouble === null) {
    return (
      <p class="live" role="status">
        {at === null ? 'connecting …' : `live${going === '' ? '' : `, ${going}`}`}
      </p>
    )
  }
  const since = at === null ? 'the start' : new Date(at).toLocaleTimeString('sv')
  return (
    <p class="live stale" role="status">
      stale since {since}: {trouble.message} Asking again every {everyMs / 1000} seconds. {trouble.fix}
    </p>
  )
}
