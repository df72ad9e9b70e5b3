import { extname } from 'node:path'
import { gui } from '../../../../kits/environment.ts'

/** The windows of a module as pages. */
export interface CuaSite extends gui.TaskSite {
  /** Gives markup an address. */
  put(html: string, title: string): string
}

const origin = 'http://cua-bench.test'
const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
}

/**
 * Serves the windows of a module, with the frame around them that cua-bench gives (cua_bench/computers/webtop.py at b296ec9):
 * it loads Tailwind and Iconify from other hosts, which stand in `assets` by host and path or are not there.
 */
export function cuaSite(assets: string | null): CuaSite {
  const pages = new Map<string, string>()
  return {
    start: 'about:blank',
    put: (html, title) => {
      const path = `/window/${pages.size + 1}`
      pages.set(path, framed(html, title))
      return origin + path
    },
    serve: async ({ url, method }) => {
      if (method !== 'GET') return null
      if (url.origin === origin) {
        const body = pages.get(url.pathname)
        const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' }
        return body === undefined ? { status: 404 } : { status: 200, headers, body }
      }
      const data = assets === null ? null : await gui.asset(assets, { id: '', url: url.href, name: url.pathname })
      if (data === null) return null
      return { status: 200, headers: { 'content-type': types[extname(url.pathname)] ?? 'text/javascript' }, body: data }
    },
    state: () => null,
    forged: 0,
  }
}

function framed(html: string, title: string): string {
  const plain = title.replaceAll(/[<&]/g, '')
  return `<!doctype html><html style="height:100%"><head><meta charset="utf-8"><title>${plain}</title>
<style>.hidden{display:none}</style>
<script src="https://cdn.jsdelivr.net/npm/@tailwindcss/browser@4"></script>
<script src="https://cdn.jsdelivr.net/npm/iconify-icon@3.0.2/dist/iconify-icon.min.js"></script></head>
<body style="margin:0;padding:0;width:100%;height:100%;display:flex;flex-direction:column;overflow:hidden">${html}</body></html>`
}
