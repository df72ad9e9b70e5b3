import type { CallClass, Id } from '../../core/index.ts'
import { requestMessages } from '../../proxy/index.ts'
import {
  buildRows,
  type CallRecord,
  type DriftCause,
  type Segment,
  type SessionLog,
  withHindsight,
} from '../../trajectory/index.ts'
import { readMessage } from '../../read/index.ts'
import type { AppendFacts, RetryFacts } from './contract.ts'
import { type ExactTokens, exactTokens, type Journal } from './exact.ts'

/** The calls of a session with the classes that its later calls make plain. */
export function callsOf(log: SessionLog): readonly CallRecord[] {
  return withHindsight(log).calls
}

/** Numbers of calls by class. */
export function classesOf(calls: readonly CallRecord[]): Readonly<Partial<Record<CallClass, number>>> {
  const counts: Partial<Record<CallClass, number>> = {}
  for (const { intent } of calls) counts[intent.callClass] = (counts[intent.callClass] ?? 0) + 1
  return counts
}

/**
 * Extension of the agent's own conversations: whether the prompt of each main call stands, in the stored tree of tokens,
 * behind the whole answer of the main call before it; where not, the causes that the drift report gives, or `untold`.
 */
export function appendOf(logs: readonly SessionLog[]): AppendFacts {
  const causes: Partial<Record<DriftCause | 'untold', number>> = {}
  let [turns, extended] = [0, 0]
  for (const log of logs) {
    const segments = new Map(log.segments.map((segment) => [segment.id, segment]))
    const main = callsOf(log).filter(({ intent, commit }) => intent.callClass === 'main' && answered(commit))
    for (const [at, { commit }] of main.entries()) {
      const before = main[at - 1]
      if (before === undefined || commit === null) continue
      turns += 1
      if (standsBehind(commit.promptLeaf, before, segments)) extended += 1
      else for (const cause of told(commit.forks)) causes[cause] = (causes[cause] ?? 0) + 1
    }
  }
  return { turns, extended, causes }
}

function answered(commit: CallRecord['commit']): boolean {
  return commit?.choices.some(({ segmentId }) => segmentId !== null) === true
}

function told(forks: readonly { readonly cause: DriftCause }[]): readonly (DriftCause | 'untold')[] {
  return forks.length === 0 ? ['untold'] : forks.map(({ cause }) => cause)
}

function standsBehind(leaf: Id | null, before: CallRecord, segments: ReadonlyMap<Id, Segment>): boolean {
  const answers = new Set(before.commit?.choices.map(({ segmentId }) => segmentId))
  let offset: number | null = null
  for (let at = leaf; at !== null;) {
    const segment = segments.get(at)
    if (segment === undefined) return false
    if (answers.has(at)) return offset === null || offset === segment.tokens.length
    offset = segment.parent?.offset ?? null
    at = segment.parent?.segmentId ?? null
  }
  return false
}

/** Sampled tokens in all, and in answers that reached the harness. */
export function deliveredTokens(log: SessionLog): { readonly sampled: number; readonly delivered: number } {
  const reached = new Set(log.calls.filter(({ delivery }) => delivery !== 'unknown').map(({ intent }) => intent.id))
  let sampled = 0
  let delivered = 0
  for (const segment of log.segments) {
    if (segment.origin !== 'sampled') continue
    sampled += segment.tokens.length
    if (segment.callId !== null && reached.has(segment.callId)) delivered += segment.tokens.length
  }
  return { sampled, delivered }
}

/** Trainable tokens of a session's rows, and those of them whose context is what the engine's journal says. */
export function exactOf(log: SessionLog, journal: Journal): ExactTokens {
  const { rows } = buildRows(log, { rolloutId: log.session.id, groupId: log.session.id, taskDigest: '' })
  return exactTokens(rows, journal)
}

/** What followed the one call that the engine failed. */
export function retryOf(calls: readonly CallRecord[], completed: boolean): RetryFacts {
  const failed = calls.find(({ commit }) => commit?.outcome.kind === 'engine_error')
  if (failed?.commit === undefined || failed.commit === null) {
    return { struck: null, repeats: 0, marked: 0, afterMs: null, recovered: completed }
  }
  const { endedAt } = failed.commit
  const later = calls.filter(({ intent }) => intent.seq > failed.intent.seq)
  const repeats = later.filter(({ intent }) => intent.requestDigest === failed.intent.requestDigest)
  const [next] = later
  return {
    struck: failed.intent.callClass,
    repeats: repeats.length,
    marked: repeats.filter(
      ({ intent: { lineage } }) => (lineage.retryCount ?? 0) > 0 || lineage.idempotencyKey !== null,
    ).length,
    afterMs: next === undefined ? null : Math.max(0, next.intent.startedAt - endedAt),
    recovered: completed && later.length > 0,
  }
}

/** Whether the results of an answer's several calls came back in one request; null where no answer had several. */
export function parallelOf(calls: readonly CallRecord[]): boolean | null {
  for (const [at, call] of calls.entries()) {
    const [choice] = call.commit?.choices ?? []
    const asked = choice === undefined ? 0 : readMessage(parsed(choice.message)).toolCalls.length
    const next = calls[at + 1]
    if (asked >= 2 && next !== undefined) return toolResults(next) - toolResults(call) >= asked
  }
  return null
}

function toolResults({ intent }: CallRecord): number {
  return requestMessages(intent).filter((message) => readMessage(message).role === 'tool').length
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
