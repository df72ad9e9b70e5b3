import { randomBytes } from 'node:crypto'
import type { SiteRequest, SiteResponse } from '../browser/index.ts'
import type { TaskSite } from '../site.ts'
import type { App, Fields, RunningApp } from './app.ts'
import { html } from './html.ts'
import { page, pageMark } from './page.ts'

/** An app as one attempt sees it: its pages, and its tools on the same state. */
export interface AppSite extends TaskSite, Pick<RunningApp, 'tools'> {}

/**
 * Serves an app at `http://<name>.test/`. Every page carries a mark that only this attempt knows; a change without it is
 * refused, and scripts without it do not run (Content-Security-Policy, `javascript:` addresses included).
 */
export function appSite(app: App, seed: number): AppSite {
  const running = app.open(seed)
  const mark = randomBytes(16).toString('hex')
  const host = `${app.name}.test`
  let forged = 0
  const change = ({ url, headers, body }: SiteRequest): SiteResponse => {
    const { _page, ...fields } = fieldsOf(new URLSearchParams(body.toString('utf8')))
    const origin = headers['Origin'] ?? headers['origin']
    if (_page !== mark || (origin !== undefined && origin !== `http://${host}`)) {
      forged += 1
      return said(403, 'This page is out of date. Go back and load it again.')
    }
    const next = running.act(url.pathname.slice('/do/'.length), fields)
    if (next.startsWith('!')) return said(409, next.slice(1))
    return { status: 303, headers: { location: next } }
  }
  const said = (status: number, text: string): SiteResponse => ({
    status,
    headers: headersFor(mark),
    body: page({
      title: app.name,
      body: html`<h1>Not done</h1>
        <p class="error">${text}</p>
        <p><a href="/">Back to the start</a></p>`,
    }).text.replaceAll(pageMark, mark),
  })
  return {
    start: `http://${host}/`,
    serve: (request) => {
      const { url, method } = request
      if (url.host !== host) return null
      if (method === 'POST' && url.pathname.startsWith('/do/')) return change(request)
      if (method !== 'GET') return said(405, 'This is not possible here.')
      const shown = running.page(url.pathname, fieldsOf(url.searchParams))
      if (shown === null) return said(404, 'There is no such page.')
      return { status: 200, headers: headersFor(mark), body: shown.text.replaceAll(pageMark, mark) }
    },
    tools: running.tools,
    state: () => running.state(),
    get forged() {
      return forged
    },
  }
}

function fieldsOf(parameters: URLSearchParams): Fields {
  const out: Record<string, string> = {}
  for (const [name, value] of parameters) {
    // Several ticks of one name come as a list.
    out[name] = out[name] === undefined ? value : `${out[name]},${value}`
  }
  return out
}

function headersFor(mark: string): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${mark}'`,
    "style-src 'unsafe-inline'",
    "img-src data: 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': policy.join('; '),
  }
}
