import { type Id, PaddockError } from '../../core/index.ts'
import type { Dialect } from '../dialects/contract.ts'
import type { StoredRoute } from '../stored-responses.ts'

/** A request path of the inference listener, read. */
export interface RoutePath {
  /** Session id of `/s/<session>/…`, null on key-only routes. */
  readonly sessionId: Id | null
  readonly route: Route
}

/** Everything that is served; all else is denied. */
export type Route =
  | { readonly kind: 'generate'; readonly dialect: Dialect['name']; readonly path: string }
  /** Counts the tokens of a generation request without making it one. */
  | { readonly kind: 'count'; readonly dialect: Dialect['name']; readonly path: string }
  /** A stored response, read again or deleted. */
  | ({ readonly kind: 'stored' } & StoredRoute)
  /** Read-only, passed through to the engine under this path. */
  | { readonly kind: 'pass'; readonly path: string }

const posted = [
  { path: /^\/v1\/chat\/completions$/, kind: 'generate', dialect: 'chat' },
  { path: /^\/v1\/responses$/, kind: 'generate', dialect: 'responses' },
  { path: /^\/v1\/responses\/input_tokens$/, kind: 'count', dialect: 'responses' },
  { path: /^\/v1\/messages$/, kind: 'generate', dialect: 'messages' },
  { path: /^\/v1\/messages\/count_tokens$/, kind: 'count', dialect: 'messages' },
  { path: /^\/v1(beta|alpha)?\/models\/[\w.%/-]+:(stream)?[gG]enerateContent$/, kind: 'generate', dialect: 'gemini' },
  { path: /^\/v1(beta|alpha)?\/models\/[\w.%/-]+:countTokens$/, kind: 'count', dialect: 'gemini' },
] as const

/** Of nearly every request: told without a look at the patterns. */
const chatRoute: RoutePath = {
  sessionId: null,
  route: { kind: 'generate', dialect: 'chat', path: '/v1/chat/completions' },
}

/** In whose shape an error on this URL is told, also where the route is not served. */
export function dialectNameOf(url: string): Dialect['name'] {
  const path = pathOf(url).replace(/^\/s\/[^/]+/, '')
  if (/^\/v1\/messages(\/|$)/.test(path)) return 'messages'
  return /^\/v1(beta|alpha)\/|:(stream)?generateContent$|:countTokens$/i.test(path) ? 'gemini' : 'chat'
}

/**
 * Default deny: the dialects' generation routes and listed read-only ones. No route of the engine itself (tokenize,
 * pause, weights, metrics) is reachable. Throws `ROUTE_DENIED`, and with `allow` in its data where only the method is wrong.
 */
export function readRoute(method: string, url: string): RoutePath {
  if (method === 'POST' && url === '/v1/chat/completions') return chatRoute
  const path = pathOf(url)
  const session = /^\/s\/([^/]+)(\/.*)?$/.exec(path)
  const sessionId = session?.[1] ?? null
  const rest = session === null ? path : (session[2] ?? '/')
  const served = method === 'POST' ? posted.find(({ path }) => path.test(rest)) : undefined
  if (rest.endsWith(':streamGenerateContent') && !/[?&]alt=sse(&|$)/.test(url)) {
    throw new PaddockError('ROUTE_DENIED', 'streamGenerateContent is served as server-sent events only.', {
      fix: 'Ask with ?alt=sse, as the SDKs do.',
    })
  }
  if (served !== undefined) return { sessionId, route: { kind: served.kind, dialect: served.dialect, path: rest } }
  const responseId = /^\/v1\/responses\/(resp_[0-9a-z]+)$/.exec(rest)?.[1]
  if (responseId !== undefined && (method === 'GET' || method === 'DELETE')) {
    return { sessionId, route: { kind: 'stored', verb: method === 'GET' ? 'read' : 'delete', responseId } }
  }
  if (method === 'GET' && (rest === '/v1/models' || /^\/v1\/models\/[\w.:-]+(\/[\w.:-]+)*$/.test(rest))) {
    if (!rest.split('/').includes('..')) return { sessionId, route: { kind: 'pass', path: rest } }
  }
  throw new PaddockError('ROUTE_DENIED', `${method} ${rest.slice(0, 200)} is not served on a session.`)
}

/** The path alone, without decoding: an encoded path matches no route. A request in absolute form keeps its path. */
function pathOf(url: string): string {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  if (path.startsWith('/')) return path
  return /^https?:\/\/[^/]*(\/.*)?$/.exec(path)?.[1] ?? path
}
