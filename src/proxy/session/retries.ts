import type { Digest, Id } from '../../core/index.ts'

/** An earlier call of the session, as the retry rule sees it. */
export interface EarlierCall {
  readonly callId: Id
  readonly digest: Digest
  readonly idempotencyKey: string | null
  /** `failed`: there is no whole answer and there will be none. */
  readonly state: 'running' | 'answered' | 'failed'
  /** A client waits for it on an open connection. */
  readonly connected: boolean
  /** An answer or an error was fully sent to some client. */
  readonly sent: boolean
  /** Another call already repeats it. */
  readonly repeated: boolean
}

/** What the client says of a request that may repeat an earlier one. */
export interface RetryMarks {
  readonly digest: Digest
  /** `x-stainless-retry-count`. */
  readonly retryCount: number | null
  readonly idempotencyKey: string | null
}

export type RetryJudgement =
  | { readonly kind: 'fresh' }
  /** The client gets the answer of that call: the rest of it while it runs, all of it when it is done. */
  | { readonly kind: 'same'; readonly callId: Id }
  /** A new call that takes the place of a failed one. */
  | { readonly kind: 'again'; readonly callId: Id }

/**
 * Invariant I6. A request repeats an earlier one if the client marks it so (retry count above zero, the same idempotency
 * key), if the earlier call's connection closed before the answer was fully sent, or if that call failed: there is no sample
 * to be a sibling of. An identical body otherwise is a new sample: n siblings of a group look exactly like that.
 */
export function judgeRetry(earlier: readonly EarlierCall[], marks: RetryMarks): RetryJudgement {
  if (earlier.length === 0) return fresh
  const alike = earlier.filter((call) => call.digest === marks.digest && !otherKey(call, marks))
  const byKey = marks.idempotencyKey === null ? [] : alike.filter((c) => c.idempotencyKey === marks.idempotencyKey)
  const marked = (marks.retryCount ?? 0) > 0 || byKey.length > 0
  const candidates = byKey.length > 0 ? byKey : alike

  const lost = candidates.find((call) => !call.connected && !call.sent && call.state !== 'failed')
  if (lost !== undefined) return { kind: 'same', callId: lost.callId }
  const broken = candidates.findLast((call) => call.state === 'failed' && !call.repeated)
  if (broken !== undefined) return { kind: 'again', callId: broken.callId }
  if (!marked) return fresh
  const running = candidates.find((call) => call.state === 'running')
  if (running !== undefined) return { kind: 'same', callId: running.callId }
  const answered = candidates.findLast((call) => call.state === 'answered')
  return answered === undefined ? fresh : { kind: 'same', callId: answered.callId }
}

const fresh: RetryJudgement = { kind: 'fresh' }

/** Two different idempotency keys name two different requests, whatever their bodies. */
function otherKey(call: EarlierCall, marks: RetryMarks): boolean {
  return call.idempotencyKey !== null && marks.idempotencyKey !== null && call.idempotencyKey !== marks.idempotencyKey
}
