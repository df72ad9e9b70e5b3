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
  readonly admitted: { readonly form: { readonly requestIdHeader: string } }
  /** False where its answer cannot be given in this form; absent: in any. */
  readonly fits?: (view: AnswerView) => boolean
  /** Gives the answer to one more client. */
  attach(client: Client): void
}
