import type { Id } from '../../core/index.ts'
import type { AnswerView } from '../dialects/contract.ts'
import type { Client } from '../http/client.ts'

/** A call that a client may ask for again: one of this process, or one that an earlier process left in the log. */
export interface RememberedCall {
  readonly id: Id
  readonly phase: 'waiting' | 'running' | 'committing' | 'answered' | 'failed'
  /** A client waits for it on an open connection. */
  readonly connected: boolean
  /** Some client got all of an answer or error. */
  readonly sent: boolean
  /** Another call repeats it. */
  repeated: boolean
  /** The log has it: one that was turned away or left before its turn came is not there. */
  readonly recorded: boolean
  readonly admitted: { readonly form: { readonly requestIdHeader: string } }
  /** False where its answer cannot be given in this form; absent: in any. */
  readonly fits?: (view: AnswerView) => boolean
  /** Gives the answer to one more client. */
  attach(client: Client): void
}

/** A call that no process recorded: its client was given an error, or left before the engine was asked. It can only be repeated. */
export function lostCall(id: Id, repeated: boolean): RememberedCall {
  const admitted = { form: { requestIdHeader: 'x-request-id' } }
  const state = { phase: 'failed', connected: false, sent: true, recorded: false } as const
  return { id, ...state, repeated, admitted, attach: () => undefined }
}
