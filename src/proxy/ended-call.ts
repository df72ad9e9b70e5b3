import type { CallCommit } from '../trajectory/index.ts'
import type { PaddockError } from '../core/index.ts'
import { countsOf } from './answered.ts'
import type { AdmittedCall, EndedCall } from './call-contract.ts'
import { callLine } from './call-line.ts'
import { emptyCommit } from './commit.ts'
import type { Answer } from './dialects/chat/answer.ts'

/** How a call came out that is committed; `tainted` by what the harness saw and must not be scored for. */
export function outcomeOf(
  call: AdmittedCall,
  answer: Answer,
  { commit, tainted }: { readonly commit: CallCommit; readonly tainted: string | null },
): EndedCall {
  const { promptTokens, sampledTokens } = countsOf(answer)
  const line = callLine(call, { commit, answer, promptTokens, sampledTokens })
  return { commit, streamed: call.request.streamed && !call.buffered, promptTokens, sampledTokens, tainted, line }
}

/** How a call came out that could not be committed: nothing of it is in the store. */
export function lostOutcome(
  call: AdmittedCall,
  answer: Answer,
  { error, endedAt, attended }: { readonly error: PaddockError; readonly endedAt: number; readonly attended: boolean },
): EndedCall {
  const commit: CallCommit = {
    ...emptyCommit(call.intent.id, endedAt),
    outcome: { kind: 'engine_error', code: error.code, status: null, message: error.message },
    status: error.status,
  }
  const none = { commit, promptTokens: null, sampledTokens: null }
  return { ...none, streamed: false, tainted: attended ? error.code : null, line: callLine(call, { ...none, answer }) }
}
