import type { Fork, SessionLog } from '../../trajectory/index.ts'
import type { Paint } from './colour.ts'
import type { TokenTexts } from '../../read/index.ts'
import { tokenText } from './tokens.ts'
import { plural, shortId } from './units.ts'

/** One entry of the drift report, with the call whose prompt did not extend. */
export interface DriftEntry extends Fork {
  readonly sessionId: string
  readonly callId: string
  readonly seq: number
  readonly strategy: 'record' | 'splice'
}

/** The drift report of a session, in the order of its calls. */
export function driftEntries(log: SessionLog): DriftEntry[] {
  return log.calls.flatMap(({ intent, commit }) =>
    (commit?.forks ?? []).map((fork) => ({
      ...fork,
      sessionId: intent.sessionId,
      callId: intent.id,
      seq: intent.seq,
      strategy: intent.strategy,
    })),
  )
}

/** Causes with their numbers, most frequent first. */
export function causesOf(entries: readonly DriftEntry[]): Readonly<Record<string, number>> {
  const counts = new Map<string, number>()
  for (const { cause } of entries) counts.set(cause, (counts.get(cause) ?? 0) + 1)
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a))
}

/** A session's drift report for people: cause, place, and what stood there on both sides, decoded as far as it is known. */
export function driftText(entries: readonly DriftEntry[], texts: TokenTexts, paint: Paint): string {
  return entries
    .map((entry) => {
      const { same, expected, got } = aligned(entry)
      const words = (ids: readonly number[]): string => ids.map((id) => tokenText(id, texts)).join('')
      return [
        `${paint('name', shortId(entry.sessionId))}  call ${entry.seq}  ${paint('warn', entry.cause)}  at token ${entry.position}, ${plural(entry.tokensAffected, 'sampled token')} behind it, strategy ${entry.strategy}`,
        `  before   ${paint('dim', words(same))}`,
        `  recorded ${words(expected)}`,
        `  prompt   ${words(got)}`,
      ].join('\n')
    })
    .join('\n')
}

/** The windows of both sides begin alike and part at the difference. */
function aligned({ expected, got }: Fork): {
  readonly same: readonly number[]
  readonly expected: readonly number[]
  readonly got: readonly number[]
} {
  let at = 0
  while (at < expected.length && expected[at] === got[at]) at += 1
  return { same: expected.slice(0, at), expected: expected.slice(at), got: got.slice(at) }
}
