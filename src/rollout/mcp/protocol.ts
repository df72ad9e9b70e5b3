import { z } from 'zod'

/**
 * The part of the Model Context Protocol that a server of tools speaks: JSON-RPC 2.0 messages and lifecycle as in
 * modelcontextprotocol.io/specification/2025-06-18; the later revision of 2025-11-25 asks nothing more of it.
 */
export const protocolVersions = ['2025-06-18', '2025-11-25'] as const

/** JSON-RPC 2.0 §5.1. */
export const rpcCode = {
  parse: -32700,
  invalidRequest: -32600,
  methodUnknown: -32601,
  invalidParams: -32602,
  internal: -32603,
} as const

export type RequestId = string | number

export type Params = Readonly<Record<string, unknown>>

const params = z.record(z.string(), z.unknown()).default({})
const request = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number()]),
  method: z.string(),
  params,
})
const notification = z.object({ jsonrpc: z.literal('2.0'), id: z.undefined().optional(), method: z.string(), params })
const response = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number()]),
  method: z.undefined().optional(),
})

/** What a client may send. A response answers nothing, because this server asks nothing. */
export const clientMessage = z.union([
  request.transform((message) => ({ kind: 'request' as const, ...message })),
  notification.transform((message) => ({ kind: 'notification' as const, ...message })),
  response.transform(() => ({ kind: 'response' as const })),
])
export type ClientMessage = z.infer<typeof clientMessage>

export type RpcResponse = { readonly jsonrpc: '2.0'; readonly id: RequestId | null } & (
  | { readonly result: Params }
  | { readonly error: { readonly code: number; readonly message: string } }
)

/** A request that gets a JSON-RPC error as its answer. */
export class RpcError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

export function failure(id: RequestId | null, code: number, message: string): RpcResponse {
  return { jsonrpc: '2.0', id, error: { code, message } }
}
