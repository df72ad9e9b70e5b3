import { z } from 'zod'
import type { ToolServer } from './tool-server.ts'
import {
  type ClientMessage,
  failure,
  type Params,
  protocolVersions,
  type RequestId,
  rpcCode,
  RpcError,
  type RpcResponse,
} from './protocol.ts'

const toolCall = z.looseObject({ name: z.string(), arguments: z.record(z.string(), z.unknown()).default({}) })
const cancelled = z.looseObject({ requestId: z.union([z.string(), z.number()]) })
const initialize = z.looseObject({ protocolVersion: z.string() })

/** One MCP client of the box: its requests in flight, by the ids that it gave them. */
export class McpClient {
  readonly #server: ToolServer
  readonly #running = new Map<RequestId, AbortController>()

  constructor(toolServer: ToolServer) {
    this.#server = toolServer
  }

  /** Null: a notification, which has no answer, or a request that the client took back. Never throws. */
  async answer(message: ClientMessage): Promise<RpcResponse | null> {
    if (message.kind === 'response') return null
    if (message.kind === 'notification') {
      this.#notice(message.method, message.params)
      return null
    }
    const { id, method } = message
    // An id in use would make a cancellation ambiguous.
    if (this.#running.has(id)) return failure(id, rpcCode.invalidRequest, 'The id is in use by another request.')
    const abort = new AbortController()
    this.#running.set(id, abort)
    try {
      const result = await this.#result(method, message.params, abort.signal)
      return abort.signal.aborted ? null : { jsonrpc: '2.0', id, result }
    } catch (error) {
      if (abort.signal.aborted) return null
      if (error instanceof RpcError) return failure(id, error.code, error.message)
      this.#server.broke(error)
      return failure(id, rpcCode.internal, 'The server could not answer.')
    } finally {
      this.#running.delete(id)
    }
  }

  /** Takes back everything in flight: the client is gone. */
  close(): void {
    for (const abort of this.#running.values()) abort.abort(new Error('the MCP session is over'))
  }

  #notice(method: string, params: Params): void {
    if (method !== 'notifications/cancelled') return
    const parsed = cancelled.safeParse(params)
    if (parsed.success) this.#running.get(parsed.data.requestId)?.abort(new Error('cancelled by the client'))
  }

  async #result(method: string, params: Params, signal: AbortSignal): Promise<Params> {
    switch (method) {
      case 'initialize': {
        const { protocolVersion } = parse(initialize, params)
        const spoken = protocolVersions.find((version) => version === protocolVersion) ?? protocolVersions[0]
        return { protocolVersion: spoken, capabilities: { tools: {} }, serverInfo: this.#server.serverInfo }
      }
      case 'ping':
        return {}
      case 'tools/list':
        return { tools: this.#server.listed() }
      case 'tools/call': {
        const call = parse(toolCall, params)
        const outcome = await this.#server.call(call.name, call.arguments, signal)
        const isError = outcome.status !== 'ok'
        // Specification 2025-06-18, Server Features, Tools, §Image Content.
        const images = (outcome.pictures ?? []).map(({ data, mediaType }) => ({
          type: 'image',
          data: Buffer.from(data).toString('base64'),
          mimeType: mediaType,
        }))
        const content = [{ type: 'text', text: outcome.text }, ...images]
        return { content, isError, _meta: { status: outcome.status } }
      }
      default:
        throw new RpcError(rpcCode.methodUnknown, `Method not found: ${method.slice(0, 100)}`)
    }
  }
}

function parse<T>(schema: z.ZodType<T>, params: Params): T {
  const parsed = schema.safeParse(params)
  if (parsed.success) return parsed.data
  throw new RpcError(rpcCode.invalidParams, `Invalid params: ${z.prettifyError(parsed.error)}`)
}
