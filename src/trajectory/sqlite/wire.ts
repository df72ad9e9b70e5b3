/** What goes between the main thread and a store thread. */
import { catalogue, type ErrorCode, type ErrorData, isPaddockError, PaddockError } from '../../core/index.ts'

/** A request to a store thread. */
export interface ThreadRequest {
  readonly id: number
  readonly op: string
  readonly args: readonly unknown[]
}

/** Answers, several at once after a group commit. */
export type ThreadAnswer =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly error: WireError }

/** First message of a thread: it is open, or why not. */
export type ThreadHello =
  | { readonly hello: true; readonly value: unknown }
  | { readonly hello: false; readonly error: WireError }

/** An error as plain data; `code` null: not one of ours. */
export interface WireError {
  readonly code: string | null
  readonly message: string
  readonly fix: string
  readonly data: ErrorData
  readonly stack: string
}

/** An error for the way. */
export function toWire(error: unknown): WireError {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  if (isPaddockError(error)) {
    return { code: error.code, message: error.message, fix: error.fix, data: error.data, stack }
  }
  return { code: null, message: error instanceof Error ? error.message : String(error), fix: '', data: {}, stack }
}

/** The error again; one that is not ours becomes `STORE_FAILED` with the original as cause. */
export function fromWire(wire: WireError): PaddockError {
  if (wire.code !== null && isCode(wire.code)) {
    return new PaddockError(wire.code, wire.message, { fix: wire.fix, data: wire.data })
  }
  const cause = new Error(wire.message)
  cause.stack = wire.stack
  return new PaddockError('STORE_FAILED', wire.message, { cause })
}

function isCode(code: string): code is ErrorCode {
  return code in catalogue
}
