import type { IncomingHttpHeaders } from 'node:http'
import { PaddockError } from './errors.ts'
import { isLoopback } from './origin.ts'

/**
 * What a web page that the user visits must not get at: open mode and servers of tools, which ask for no key, and the viewer. Not a page of another origin
 * (`Origin`, `Sec-Fetch-Site`), and not one whose name was made to lead here (DNS rebinding: its `Host` is that name). What is
 * no browser sends neither of the first two. Throws `ORIGIN_REFUSED`.
 */
export function requireOwnPage(headers: IncomingHttpHeaders): void {
  const { host, origin, 'sec-fetch-site': site } = headers
  if (host !== undefined && !isLoopback(nameOf(host))) throw refused(`the host ${JSON.stringify(host)}`)
  if (origin !== undefined && origin !== `http://${host}`) throw refused(`a web page of ${JSON.stringify(origin)}`)
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw refused(`a web page (${String(site)})`)
}

/** The name in `name:port`; an IPv6 address without its brackets. */
function nameOf(host: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(host)?.[1] ?? host.replace(/:\d+$/, '').toLowerCase()
}

function refused(what: string): PaddockError {
  return new PaddockError('ORIGIN_REFUSED', `This address does not answer ${what}.`)
}
