import { expect, it } from 'vitest'
import type { CdpPipe } from './cdp-pipe.ts'
import { GuiPage } from './page.ts'

/** A tab whose browser says nothing of itself. */
function tab(): { readonly page: GuiPage; readonly told: (method: string, params: object) => void } {
  const silent = { death: null, send: async () => ({}) } as unknown as CdpPipe
  const page = new GuiPage({
    pipe: silent,
    targetId: 'tab',
    session: 'session',
    site: { start: 'http://site.test/', serve: () => null },
    screen: { width: 800, height: 600 },
    inWindow: false,
    userAgent: null,
    isFront: () => true,
  })
  return { page, told: (method, params) => page.take({ method, params, session: 'session' }) }
}

it('is busy until the answer to a request of its script has come to the page, or the page has gone', () => {
  const { page, told } = tab()
  const asks = (requestId: string, type: string) => told('Network.requestWillBeSent', { requestId, type })
  expect(page.busy).toBe(false)
  for (const end of ['Network.responseReceived', 'Network.loadingFailed']) {
    asks('1', 'Fetch')
    expect(page.busy).toBe(true)
    told(end, { requestId: '1' })
    expect(page.busy).toBe(false)
  }
  asks('2', 'XHR')
  told('Page.frameNavigated', { frame: { id: 'inner', parentId: 'tab', url: 'http://site.test/inner' } })
  expect(page.busy).toBe(true)
  told('Page.frameNavigated', { frame: { id: 'tab', url: 'http://site.test/next' } })
  expect(page.busy).toBe(false)
  // A connection that stays open is no answer that is waited for.
  asks('3', 'EventSource')
  asks('4', 'Ping')
  expect(page.busy).toBe(false)
})
