/**
 * What the control API and `--json` say of recorded things: plain JSON, stable keys, no bytes. Arrays of ids and
 * logprobs are left to exports.
 */
import type { Id } from '../core/index.ts'
import {
  type CallRecord,
  type RolloutView,
  type Segment,
  type SessionLog,
  type SessionRecord,
  verdictInForce,
} from '../trajectory/index.ts'

/** A session without its key digest. */
export function sessionView(session: SessionRecord): Omit<SessionRecord, 'keyDigest'> {
  const { keyDigest: _secret, ...rest } = session
  return rest
}

/** Sizes of the calls of one session, from its segments. */
export interface TokenCounts {
  /** Tokens of the prompt, from the root; null where the engine gave no ids. */
  readonly prompt: number | null
  /** Prompt tokens that no earlier call of the session had brought. */
  readonly promptNew: number
  /** Sampled tokens of all choices; null where the engine gave no ids. */
  readonly sampled: number | null
  /** Tokens of answers that were given again from the session that this one goes on from. */
  readonly replayed: number
}

export function tokenCounts(log: SessionLog): ReadonlyMap<Id, TokenCounts> {
  const segments = new Map(log.segments.map((segment) => [segment.id, segment]))
  const counts = new Map<Id, TokenCounts>()
  for (const { intent, commit } of log.calls) {
    if (commit === null) continue
    const own = log.segments.filter((segment) => segment.callId === intent.id)
    const sampledSegments = own.filter((segment) => segment.origin === 'sampled')
    const hasIds = commit.choices.some((choice) => choice.segmentId !== null)
    counts.set(intent.id, {
      prompt: commit.promptLeaf === null ? null : depth(segments, commit.promptLeaf),
      promptNew: sum(own.filter((segment) => segment.origin === 'prompt')),
      sampled: hasIds ? sum(sampledSegments) : null,
      replayed: sum(own.filter((segment) => segment.origin === 'replayed' && segment.choice !== null)),
    })
  }
  return counts
}

/** Tokens from the root to the end of a segment. */
function depth(segments: ReadonlyMap<Id, Segment>, leaf: Id): number {
  let total = 0
  let take: number | null = null
  for (let here = segments.get(leaf); here !== undefined;) {
    total += take ?? here.tokens.length
    take = here.parent?.offset ?? null
    here = here.parent === null ? undefined : segments.get(here.parent.segmentId)
  }
  return total
}

function sum(segments: readonly Segment[]): number {
  return segments.reduce((total, segment) => total + segment.tokens.length, 0)
}

/** One call: facts and sizes; bodies stay in the store. */
export function callView(call: CallRecord, counts: TokenCounts | undefined) {
  const { intent, commit } = call
  return {
    id: intent.id,
    sessionId: intent.sessionId,
    seq: intent.seq,
    class: intent.callClass,
    dialect: intent.dialect,
    streamed: intent.streamed,
    strategy: intent.strategy,
    startedAt: intent.startedAt,
    endedAt: commit?.endedAt ?? null,
    firstByteAt: commit?.firstByteAt ?? null,
    retryOf: intent.retryOf,
    asked: intent.asked,
    used: intent.used,
    outcome: commit?.outcome ?? null,
    status: commit?.status ?? null,
    delivery: call.delivery,
    superseded: call.superseded,
    tokens: counts ?? null,
    claimedPromptTokens: commit?.claimedPromptTokens ?? null,
    findings: commit?.findings ?? [],
    forks: commit?.forks ?? [],
    choices: (commit?.choices ?? []).map((choice) => ({
      index: choice.index,
      finishReason: choice.finishReason,
      message: parsed(choice.message),
    })),
  }
}

/** A session with its calls and events. */
export function sessionLogView(log: SessionLog) {
  const counts = tokenCounts(log)
  return {
    session: sessionView(log.session),
    closedAt: log.closedAt,
    calls: log.calls.map((call) => callView(call, counts.get(call.intent.id))),
    events: log.events,
  }
}

/** A rollout with the verdict in force beside all of them. */
export function rolloutView(rollout: RolloutView) {
  return { ...rollout, verdict: verdictInForce(rollout.verdicts) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
