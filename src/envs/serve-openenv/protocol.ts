import { z } from 'zod'
import type { Tool, ToolOutcome } from '../contract.ts'

// Frames and bodies of openenv 0.10.0: core/env_server/types.py, mcp_types.py, http_server.py.

/** What a client says over its WebSocket. */
export const messageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('reset'), data: z.record(z.string(), z.unknown()).default({}) }),
  z.object({ type: z.literal('step'), data: z.record(z.string(), z.unknown()) }),
  z.object({ type: z.literal('state') }),
  z.object({ type: z.literal('close') }),
])

/** What a step may be. */
export const actionSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('list_tools'), metadata: z.unknown().optional() }),
  z.object({
    type: z.literal('call_tool').default('call_tool'),
    tool_name: z.string(),
    arguments: z.record(z.string(), z.unknown()).default({}),
    metadata: z.unknown().optional(),
  }),
])

/** What a reset is given. */
export const resetSchema = z.looseObject({ seed: z.int().min(0).nullish(), task: z.string().nullish() })

/** Answers to {@link actionSchema} and a reset. */
export interface Observation {
  readonly observation: Readonly<Record<string, unknown>>
  readonly reward: number | null
  readonly done: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A request over `POST /mcp`. */
export const rpcSchema = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number()]).nullish(),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).nullish(),
})

/** JSON-RPC 2.0 §5.1. */
export const rpcCodes = { parse: -32700, invalid: -32600, method: -32601, params: -32602, server: -32000 } as const

/** What a client asked cannot be; its own to correct. */
export class Refused extends Error {
  readonly code: 'INVALID_JSON' | 'VALIDATION_ERROR' | 'SESSION_ERROR' | 'CAPACITY_REACHED'

  constructor(code: Refused['code'], message: string) {
    super(message)
    this.code = code
  }
}

export const schemaAnswer = {
  action: {
    title: 'CallToolAction',
    type: 'object',
    properties: {
      type: { type: 'string', const: 'call_tool', default: 'call_tool' },
      tool_name: { type: 'string' },
      arguments: { type: 'object', additionalProperties: true },
    },
    required: ['tool_name'],
  },
  observation: { title: 'CallToolObservation', type: 'object', additionalProperties: true },
  state: { title: 'State', type: 'object', additionalProperties: true },
} as const

export interface Listed {
  readonly name: string
  readonly description: string
  readonly input_schema: Readonly<Record<string, unknown>>
}

export function listed({ name, description, inputSchema }: Tool): Listed {
  return { name, description, input_schema: inputSchema }
}

/** A tool's answer, as FastMCP's results are. */
export function resultOf({ status, text, pictures = [] }: ToolOutcome): Readonly<Record<string, unknown>> {
  const seen = pictures.map(({ mediaType, data }) => ({
    type: 'image',
    mimeType: mediaType,
    data: Buffer.from(data).toString('base64'),
  }))
  return { content: [{ type: 'text', text }, ...seen], data: text, is_error: status === 'error' }
}
