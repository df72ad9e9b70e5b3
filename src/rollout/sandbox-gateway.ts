import type { IncomingMessage, ServerResponse } from 'node:http'
import { catalogue } from '../core/index.ts'
import type { SessionHandler } from '../proxy/index.ts'
import { type EgressGate, isProxyRequest, type ModelSocketHandlers } from '../sandbox/index.ts'

/** What an agent reaches over its box's socket. */
export interface AgentRoutes {
  readonly session: SessionHandler
  /** The environment's MCP server; null: it has none, and the route is 404. */
  readonly mcp: SessionHandler | null
}

/** Where one of several agents finds its routes, below the box's model URL. */
export function agentPath(name: string): string {
  return `/agents/${name}`
}

/**
 * What a box's socket serves: `/mcp` is the environment's tools, what a proxy is asked for (CONNECT, absolute form) is
 * egress, everything else its session's model routes. Each of several agents has the same below a path of its own. The gate decides about
 * egress and tells each attempt.
 */
export function sandboxGateway(
  parts: AgentRoutes & {
    /** By name; the first one's routes are those without a path too. Left out: there is one agent. */
    readonly agents?: ReadonlyMap<string, AgentRoutes>
    readonly egress: EgressGate
  },
): ModelSocketHandlers {
  return {
    request: (request, response) => {
      if (isProxyRequest(request)) return parts.egress.request(request, response)
      const named = /^\/agents\/([a-z][a-z0-9-]*)(?=\/)/.exec(request.url ?? '')
      const own = named === null ? undefined : parts.agents?.get(named[1] ?? '')
      if (named !== null && own !== undefined) request.url = (request.url ?? '').slice(named[0].length)
      const { session, mcp } = own ?? parts
      if (!isMcp(request)) session.request(request, response)
      else if (mcp === null) refuse(request, response)
      else mcp.request(request, response)
    },
    connect: (request, socket, head) => parts.egress.connect(request, socket, head),
  }
}

function isMcp(request: IncomingMessage): boolean {
  const path = (request.url ?? '').split('?', 1)[0] ?? ''
  return path === '/mcp' || path.startsWith('/mcp/')
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  const { status, fix } = catalogue.ROUTE_DENIED
  request.resume()
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(
    JSON.stringify({ error: { code: 'ROUTE_DENIED', message: `This environment has no MCP server. ${fix}` } }),
  )
}
