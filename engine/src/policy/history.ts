import { parseJson } from '../json/lossless.ts'
import { answerParser, parseWhole } from '../parsers/index.ts'
import { concreteCall, sameCall } from './offered-tools.ts'
import type { PromptTurn } from '../chat/prompt-view.ts'
import type { Json, JsonObject } from '../json/lossless.ts'
import type { Profile } from '../profiles.ts'
import type { ConcreteCall, readTools } from './offered-tools.ts'
import type { AbstractCall, ScriptCandidate, ScriptTurn } from './scripts.ts'

/** A call found in a prompt. A named tool choice leaves only arguments behind, so the name may be unknown. */
interface SeenCall {
  readonly name: string | undefined
  readonly args: JsonObject
}

/**
 * What comes next in a candidate after `count` calls: a whole turn, or the rest of a parallel one. Where it has answers of
 * text before its last, which make no call that could be counted, it comes after `answers` answers.
 */
export function nextTurn(candidate: ScriptCandidate, count: number, answers: number): ScriptTurn {
  if (candidate.turns.slice(0, -1).some((turn) => turn.calls.length === 0)) {
    return candidate.turns[Math.min(answers, candidate.turns.length - 1)] ?? { think: '', say: '', calls: [] }
  }
  let passed = 0
  for (const turn of candidate.turns) {
    const rest = turn.calls.slice(count - passed)
    if (count <= passed && turn.calls.length > 0) return turn
    if (count < passed + turn.calls.length) return { think: '', say: '', calls: rest }
    passed += turn.calls.length
  }
  return candidate.turns.at(-1) ?? { think: '', say: 'Done.', calls: [] }
}

/** The calls that assistant turns in `turns` made, in order. Counting calls, not turns, survives split messages. */
export function callsIn(turns: readonly PromptTurn[], profile: Profile): SeenCall[] {
  return turns.flatMap((turn, at) => {
    if (turn.role !== 'assistant') return []
    const answer = parseWhole(answerParser(profile, { kind: 'auto' }, false), turn.text)
    if (answer.calls.length > 0)
      return answer.calls.map((call) => ({ name: call.name, args: asObject(call.arguments) }))
    return turns[at + 1]?.role === 'tool' ? forcedCalls(answer.content ?? '') : []
  })
}

/**
 * The candidates that the calls so far allow: those that would have made the same calls; if the harness changed them
 * beyond recognition, those with the same tools in the same order; else all.
 */
export function compatible(
  candidates: readonly ScriptCandidate[],
  seen: readonly SeenCall[],
  tools: ReturnType<typeof readTools>,
): readonly ScriptCandidate[] {
  const exact = candidates.filter((candidate) => made(candidate, seen, tools, matchesExactly))
  if (exact.length > 0) return exact
  const named = candidates.filter((candidate) =>
    made(candidate, seen, tools, (a, b) => b.name === undefined || a.name === b.name),
  )
  return named.length > 0 ? named : candidates
}

function made(
  candidate: ScriptCandidate,
  seen: readonly SeenCall[],
  tools: ReturnType<typeof readTools>,
  matches: (planned: ConcreteCall, call: SeenCall) => boolean,
): boolean {
  const planned: readonly AbstractCall[] = candidate.turns.flatMap((turn) => turn.calls)
  return seen.every((call, at) => {
    const plan = planned[at]
    if (plan === undefined) return true
    try {
      return matches(concreteCall(plan, tools), call)
    } catch {
      // A call that these tools cannot express was not made with them.
      return false
    }
  })
}

function matchesExactly(planned: ConcreteCall, call: SeenCall): boolean {
  return sameCall(planned, { name: call.name ?? planned.name, args: call.args })
}

function asObject(text: string): JsonObject {
  try {
    const value = parseJson(text)
    return value instanceof Map ? value : new Map()
  } catch {
    return new Map()
  }
}

/** The JSON forms of a forced tool choice: a list of `{"name", "parameters"}`, or the bare arguments of one call. */
function forcedCalls(text: string): SeenCall[] {
  let value: Json
  try {
    value = parseJson(text)
  } catch {
    return []
  }
  if (value instanceof Map) return [{ name: undefined, args: value }]
  if (!Array.isArray(value)) return []
  return value.flatMap((item) => {
    const name = item instanceof Map ? item.get('name') : undefined
    const args = item instanceof Map ? item.get('parameters') : undefined
    return typeof name === 'string' && args instanceof Map ? [{ name, args }] : []
  })
}
