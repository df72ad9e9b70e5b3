import type { DriftCause } from '../../trajectory/index.ts'
import type { ChoiceAnswer } from '../dialects/chat/answer.ts'

/** What was answered, as far as it explains why the harness's next prompt looks different. */
export interface AnswerFacts {
  readonly reasoning: string | null
  readonly argumentTexts: readonly string[]
  readonly finishReason: string | null
  readonly stoppedByString: boolean
}

export function answerFacts(choice: ChoiceAnswer): AnswerFacts {
  return {
    reasoning: choice.reasoning,
    argumentTexts: choice.toolCalls.filter(Boolean).map((call) => call.arguments),
    finishReason: choice.finishReason,
    stoppedByString: typeof choice.stopReason === 'string',
  }
}

/**
 * Why a prompt did not extend the answer that it contains, from what the wire shows. `unknown` where it shows nothing:
 * the ids on both sides are in the ledger for whoever has the tokenizer.
 */
export function driftCause(facts: {
  readonly answer: AnswerFacts | null
  /** The answer as it came back. */
  readonly echoed: unknown
  readonly edited: boolean
  readonly ambiguous: boolean
  /** The prompt is shorter than the earlier path: the engine or the harness cut it. */
  readonly shorter: boolean
}): DriftCause {
  const { answer, edited, ambiguous, shorter } = facts
  if (ambiguous) return 'ambiguous'
  if (edited) return shorter ? 'compaction' : 'harness_rewrite'
  if (answer === null) return 'unknown'
  if (answer.stoppedByString) return 'stop_cut'
  if (answer.finishReason === 'length') return 'truncated'
  const echoed = echoOf(facts.echoed)
  if (echoed.argumentTexts.some((text, index) => text !== answer.argumentTexts[index])) return 'json_reserialised'
  // Also where the harness gave the thinking back and the template dropped it.
  if ((answer.reasoning ?? '') !== '') return 'think_stripped'
  return shorter ? 'truncated' : 'unknown'
}

function echoOf(message: unknown): { argumentTexts: string[] } {
  const calls = read(message, 'tool_calls')
  if (!Array.isArray(calls)) return { argumentTexts: [] }
  return {
    argumentTexts: calls.map((call: unknown) => {
      const text = read(read(call, 'function'), 'arguments')
      return typeof text === 'string' ? text : ''
    }),
  }
}

function read(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
