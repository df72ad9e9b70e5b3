import { render } from 'preact'
import { signIn, ViewerError } from './api.ts'
import { App } from './app.tsx'
import { Failure } from './load.tsx'
import { takeClicks } from './router.ts'

/** The code of a printed link is changed for a cookie, and leaves the address at once. */
async function start(): Promise<void> {
  const root = document.getElementById('app')
  if (root === null) return
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (code !== null) {
    history.replaceState(null, '', location.pathname + location.search)
    try {
      await signIn(code)
    } catch (error) {
      const known = error instanceof ViewerError ? error : new ViewerError('INTERNAL', String(error), '')
      render(<Failure error={known} />, root)
      return
    }
  }
  takeClicks()
  render(<App />, root)
}

void start()
