import type { IncomingMessage } from 'node:http'
import { type Digest, type Id, sha256 } from '../core/index.ts'
import type { ChatRequest } from './dialects/chat/request.ts'
import type { Dialect, DialectRequest } from './dialects/contract.ts'
import { isCredential } from './session/keys.ts'
import type { RememberedCall } from './session/remembered-call.ts'

/** A generation route of a dialect. */
export interface GenerationRoute {
  readonly dialect: Dialect
  readonly path: string
}

/** A request as its dialect reads it, and what it repeats. */
export interface AskedGeneration {
  readonly read: DialectRequest
  readonly dialect: Dialect
  readonly digest: Digest
  readonly retryOf: Id | null
  readonly headers: IncomingMessage['headers']
  /** What its harness sent, where something else is read; null: nothing else is. */
  readonly received: Buffer | null
}

/** Names a call to its clients. */
export function idHeader(call: RememberedCall): readonly [string, string] {
  return [call.admitted.form.requestIdHeader, call.id]
}

/** The same content in another dialect is another request: its answer has another form. */
export function callDigest(dialect: Dialect, request: ChatRequest): Digest {
  return dialect.name === 'chat' ? request.digest : sha256(`${dialect.name} ${request.digest}`)
}

/** Request headers without credentials. */
export function keptHeaders(headers: IncomingMessage['headers']): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value === undefined || isCredential(name)) continue
    kept[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return kept
}
