import { type Id, PaddockError } from '../../core/index.ts'
import type { Dialect } from '../dialects/contract.ts'
import type { ModelRoute } from '../model-routes.ts'
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
  | ({ readonly kind: 'models' } & ModelRoute)

const posted = [
  { path: /^\/v1\/chat\/completions$/, kind: 'generate', dialect: 'chat' },
  { path: /^\/v1\/completions$/, kind: 'generate', dialect: 'completions' },
  { path: /^\/v1\/embeddings$/, kind: 'generate', dialect: 'embeddings' },
  { path: /^\/v1\/responses$/, kind: 'generate', dialect: 'responses' },
  { path: /^\/v1\/responses\/input_tokens$/, kind: 'count', dialect: 'responses' },
  { path: /^\/v1\/messages$/, kind: 'generate', dialect: 'messages' },
  { path: /^\/v1\/messages\/count_tokens$/, kind: 'count', dialect: 'messages' },
  {
    path: /^\/v1(beta|alpha)?\/models\/[\w.:@+~%!'()*/-]+:(stream)?[gG]enerateContent$/,
    kind: 'generate',
    dialect: 'gemini',
  },
  { path: /^\/v1(beta|alpha)?\/models\/[\w.:@+~%!'()*/-]+:countTokens$/, kind: 'count', dialect: 'gemini' },
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
  const [, responseId, items] = /^\/v1\/responses\/(resp_[0-9a-z]+)(\/input_items)?$/.exec(rest) ?? []
  if (responseId !== undefined && (method === 'GET' || (method === 'DELETE' && items === undefined))) {
    const verb = items !== undefined ? 'items' : method === 'GET' ? 'read' : 'delete'
    return { sessionId, route: { kind: 'stored', verb, responseId, query: url.slice(url.indexOf('?') + 1) } }
  }
  const route = method === 'GET' ? modelRoute(rest) : null
  if (route !== null) return { sessionId, route }
  throw new PaddockError('ROUTE_DENIED', `${method} ${rest.slice(0, 200)} is not served on a session.`)
}

/** A route that tells of models; null for any other. */
function modelRoute(path: string): Route | null {
  const [whole, name] =
    /^\/v1(?:beta|alpha)?\/models(?:\/([\w.:@+~%!'()*-]+(?:\/[\w.:@+~%!'()*-]+)*))?$/.exec(path) ?? []
  if (whole === undefined) return null
  try {
    // The name is looked up in a list and goes into no path; SDKs write what is special in it encoded.
    return { kind: 'models', path, model: name === undefined ? null : decodeURIComponent(name) }
  } catch {
    return null
  }
}

/** The path alone, without decoding: an encoded path matches no route. A request in absolute form keeps its path. */
function pathOf(url: string): string {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  if (path.startsWith('/')) return path
  return /^https?:\/\/[^/]*(\/.*)?$/.exec(path)?.[1] ?? path
}
