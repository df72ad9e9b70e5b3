import { signal } from '@preact/signals'

/** Where the reader is: the address holds the whole state of a page, so that every page can be linked. */
export interface Place {
  readonly path: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

function here(): Place {
  return {
    path: location.pathname
      .split('/')
      .filter((part) => part !== '')
      .map(decodeURIComponent),
    query: Object.fromEntries(new URLSearchParams(location.search)),
  }
}

/** The place now. */
export const place = signal<Place>(here())

addEventListener('popstate', () => {
  place.value = here()
})

/** Goes to an address of this viewer; `replace` leaves no step to go back to. */
export function go(href: string, replace = false): void {
  if (replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  place.value = here()
  if (!replace) scrollTo(0, 0)
}

/** This page with other query parameters; null takes one away. */
export function withQuery(changes: Readonly<Record<string, string | null>>): string {
  const query = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  return `${location.pathname}${text === '' ? '' : `?${text}`}`
}

/** Takes clicks on links of this viewer, so that the page is not loaded again. */
export function takeClicks(): void {
  document.addEventListener('click', (event) => {
    const target = event.target instanceof Element ? event.target.closest('a') : null
    if (target === null || target.origin !== location.origin || target.hasAttribute('download')) return
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    go(target.pathname + target.search)
  })
}
