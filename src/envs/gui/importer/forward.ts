import type { SiteRequest, SiteResponse } from '../browser/index.ts'
import type { TaskSite } from '../site.ts'

/** What belongs to one connection and not to what is asked over it (RFC 9110, section 7.6.1), or to what we decode. */
const hop = new Set([
  'connection',
  'content-length',
  'content-encoding',
  'host',
  'keep-alive',
  'transfer-encoding',
  'te',
])
const answerMs = 60_000

/**
 * Web sites of the user's, reached by the host in the browser's place: only these origins, so that the box needs no network
 * and the browser reaches nothing else. Redirects and cookies are the browser's own affair.
 */
export function forwardSite(o: { readonly start: string; readonly origins: readonly string[] }): TaskSite {
  const origins = new Set(o.origins.map((origin) => new URL(origin).origin))
  return {
    start: o.start,
    serve: async (request) => (origins.has(request.url.origin) ? forwarded(request) : null),
    state: () => null,
    forged: 0,
  }
}

async function forwarded({ url, method, headers, body }: SiteRequest): Promise<SiteResponse> {
  const kept = Object.entries(headers).filter(([name]) => !hop.has(name.toLowerCase()))
  try {
    const response = await fetch(url, {
      method,
      headers: Object.fromEntries(kept),
      ...(method === 'GET' || method === 'HEAD' ? {} : { body: new Uint8Array(body) }),
      redirect: 'manual',
      signal: AbortSignal.timeout(answerMs),
    })
    const given = [...response.headers].filter(([name]) => !hop.has(name) && name !== 'set-cookie')
    return {
      status: response.status,
      headers: Object.fromEntries(given),
      cookies: response.headers.getSetCookie(),
      body: new Uint8Array(await response.arrayBuffer()),
    }
  } catch (cause) {
    throw new Error(`${url.origin} does not answer: ${String(cause)}`, { cause })
  }
}
