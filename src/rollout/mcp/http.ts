import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { maxNesting, nestingDepth } from '../../core/index.ts'
import { McpClient } from './client.ts'
import { clientMessage, failure, protocolVersions, rpcCode, type RpcResponse } from './protocol.ts'
import type { ToolServer } from './tool-server.ts'

const maxBodyBytes = 16 * 1024 * 1024
const maxSessions = 256

export interface McpHttpOptions {
  /** An answer that takes longer is told as an event stream, so that the client's own timeouts see something come. */
  readonly streamAfterMs?: number
  /** Time between the comments that keep such a stream alive. */
  readonly keepAliveMs?: number
}

/**
 * The streamable HTTP transport (specification 2025-06-18, §Transports): a POST carries one message; a quick answer comes
 * as JSON, a slow one as an event stream. The server never speaks first, so GET is 405. A connection that breaks takes
 * nothing back; `notifications/cancelled` does.
 */
export function mcpHttp(toolServer: ToolServer, options: McpHttpOptions = {}) {
  const sessions = new Map<string, McpClient>()
  // Clients that keep no session (curl, simple scripts) share this one.
  const stateless = new McpClient(toolServer)

  const post = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const given = request.headers['mcp-session-id']
    const client = typeof given === 'string' ? sessions.get(given) : stateless
    const parsed = parse(await readBody(request))
    if (!parsed.ok) return sendJson(response, 400, parsed.failure)
    if (client === undefined) return sendJson(response, 404, failure(null, rpcCode.invalidRequest, 'No such session.'))
    const { message } = parsed
    if (message.kind !== 'request') {
      await client.answer(message)
      response.writeHead(202).end()
      return
    }
    if (message.method !== 'initialize')
      return sendAnswer(response, client.answer(message), acceptsStream(request), options)
    const opened = new McpClient(toolServer)
    const id = randomUUID()
    sessions.set(id, opened)
    const [oldest] = sessions.keys()
    if (sessions.size > maxSessions && oldest !== undefined) drop(oldest)
    response.setHeader('mcp-session-id', id)
    return sendAnswer(response, opened.answer(message), false, options)
  }

  const drop = (id: string): boolean => {
    sessions.get(id)?.close()
    return sessions.delete(id)
  }

  return {
    request: (request: IncomingMessage, response: ServerResponse): void => {
      response.on('error', () => undefined)
      const refused = refusal(request)
      if (refused !== null) {
        request.resume()
        return sendJson(response, refused.status, failure(null, rpcCode.invalidRequest, refused.why))
      }
      if (request.method === 'POST') {
        post(request, response).catch((error: unknown) => {
          if (error instanceof BodyTooLarge) {
            sendJson(response, 413, failure(null, rpcCode.invalidRequest, error.message))
          } else response.destroy()
        })
        return
      }
      request.resume()
      const given = request.headers['mcp-session-id']
      if (request.method === 'DELETE' && typeof given === 'string') {
        response.writeHead(drop(given) ? 204 : 404).end()
        return
      }
      response.writeHead(405, { allow: 'POST, DELETE' }).end()
    },
  }
}

function refusal({ headers }: IncomingMessage): { readonly status: number; readonly why: string } | null {
  const { origin } = headers
  // A page of another origin that a browser in the box shows must not reach the tools (specification, §Security warning).
  if (origin !== undefined && !/^https?:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/.test(origin)) {
    return { status: 403, why: 'Requests of this origin are not served.' }
  }
  const version = headers['mcp-protocol-version']
  if (version !== undefined && !protocolVersions.some((known) => known === version)) {
    return { status: 400, why: `Protocol version not supported; use one of ${protocolVersions.join(', ')}.` }
  }
  return null
}

class BodyTooLarge extends Error {}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    const bytes: Buffer = chunk
    size += bytes.length
    if (size > maxBodyBytes) throw new BodyTooLarge(`The message is longer than ${maxBodyBytes} bytes.`)
    chunks.push(bytes)
  }
  return Buffer.concat(chunks).toString('utf8')
}

type Parsed =
  | { readonly ok: true; readonly message: ReturnType<typeof clientMessage.parse> }
  | { readonly ok: false; readonly failure: RpcResponse }

function parse(body: string): Parsed {
  let json: unknown
  try {
    json = JSON.parse(body)
  } catch {
    return { ok: false, failure: failure(null, rpcCode.parse, 'The body is not JSON.') }
  }
  const parsed = clientMessage.safeParse(json)
  if (parsed.success && nestingDepth(Buffer.from(body)) > maxNesting) {
    const id = parsed.data.kind === 'request' ? parsed.data.id : null
    return { ok: false, failure: failure(id, rpcCode.invalidParams, `Nested more than ${maxNesting} deep.`) }
  }
  if (parsed.success) return { ok: true, message: parsed.data }
  return { ok: false, failure: failure(null, rpcCode.invalidRequest, 'The body is not one JSON-RPC 2.0 message.') }
}

function acceptsStream(request: IncomingMessage): boolean {
  return request.headers.accept?.includes('text/event-stream') === true
}

async function sendAnswer(
  response: ServerResponse,
  answer: Promise<RpcResponse | null>,
  mayStream: boolean,
  options: McpHttpOptions,
): Promise<void> {
  let alive: NodeJS.Timeout | null = null
  const stream = (): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    response.write(': working\n\n')
    alive = setInterval(() => response.write(': working\n\n'), options.keepAliveMs ?? 15_000)
  }
  const slow = mayStream ? setTimeout(stream, options.streamAfterMs ?? 5_000) : null
  try {
    const message = await answer
    if (response.headersSent)
      response.end(message === null ? '' : `event: message\ndata: ${JSON.stringify(message)}\n\n`)
    else if (message === null) response.writeHead(202).end()
    else sendJson(response, 200, message)
  } finally {
    if (slow !== null) clearTimeout(slow)
    if (alive !== null) clearInterval(alive)
  }
}

function sendJson(response: ServerResponse, status: number, message: RpcResponse): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(message))
}
