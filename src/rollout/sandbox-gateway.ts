import type { IncomingMessage, ServerResponse } from 'node:http'
import { catalogue } from '../core/index.ts'
import type { SessionHandler } from '../proxy/index.ts'
import { type EgressGate, isProxyRequest, type ModelSocketHandlers } from '../sandbox/index.ts'

/**
 * What a box's socket serves: `/mcp` is the environment's tools, what a proxy is asked for (CONNECT, absolute form) is
 * egress, everything else its session's model routes. The gate decides about egress and tells each attempt.
 */
export function sandboxGateway(parts: {
  readonly session: SessionHandler
  /** The environment's MCP server; null: it has none, and the route is 404. */
  readonly mcp: SessionHandler | null
  readonly egress: EgressGate
}): ModelSocketHandlers {
  return {
    request: (request, response) => {
      if (isProxyRequest(request)) parts.egress.request(request, response)
      else if (!isMcp(request)) parts.session.request(request, response)
      else if (parts.mcp === null) refuse(request, response)
      else parts.mcp.request(request, response)
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
