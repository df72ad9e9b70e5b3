import { canonicalOrRaw } from '../../core/index.ts'
import type { CallRecord } from '../../trajectory/index.ts'
import { requestMessages } from '../../proxy/index.ts'
import { type ReadMessage, readMessage } from '../../read/index.ts'
import type { EchoFacts } from './contract.ts'

type TextEcho = keyof EchoFacts['text']
type ArgumentsEcho = keyof EchoFacts['arguments']

/**
 * How the answers of conversations come back: each call's answer is compared with the assistant turn that the next
 * request of the same class has in its place, counted from the first.
 */
export function echoesOf(conversations: readonly (readonly CallRecord[])[]): EchoFacts {
  const facts = {
    text: { same: 0, trimmed: 0, edited: 0, lost: 0 },
    arguments: { same: 0, reserialised: 0, edited: 0, lost: 0 },
  }
  for (const calls of conversations) countEchoes(calls, facts)
  return facts
}

function countEchoes(
  calls: readonly CallRecord[],
  {
    text,
    arguments: args,
  }: { readonly text: Record<TextEcho, number>; readonly arguments: Record<ArgumentsEcho, number> },
): void {
  const turns = calls.map((call) => ({ answer: answerOf(call), echoes: assistantTurns(call) }))
  for (const [at, { answer, echoes }] of turns.entries()) {
    const next = turns[at + 1]
    if (answer === null || next === undefined) continue
    const echo = merged(next.echoes.slice(echoes.length))
    if (answer.text !== '') text[textEcho(answer.text, echo?.text ?? null)] += 1
    for (const [index, { argumentsText }] of answer.toolCalls.entries()) {
      args[argumentsEcho(argumentsText, echo?.toolCalls[index]?.argumentsText ?? null)] += 1
    }
  }
}

function answerOf({ commit }: CallRecord): ReadMessage | null {
  const [choice] = commit?.choices ?? []
  if (choice === undefined || commit?.outcome.kind !== 'complete') return null
  try {
    return readMessage(JSON.parse(choice.message))
  } catch {
    return null
  }
}

function assistantTurns({ intent }: CallRecord): readonly ReadMessage[] {
  return requestMessages(intent)
    .map((message) => readMessage(message))
    .filter(({ role }) => role === 'assistant')
}

/** Some dialects hand one answer back in several items. */
function merged(turns: readonly ReadMessage[]): Pick<ReadMessage, 'text' | 'toolCalls'> | null {
  if (turns.length === 0) return null
  return { text: turns.map(({ text }) => text).join(''), toolCalls: turns.flatMap(({ toolCalls }) => toolCalls) }
}

function textEcho(said: string, echoed: string | null): TextEcho {
  if (echoed === null || echoed === '') return 'lost'
  if (echoed === said) return 'same'
  return echoed.trim() === said.trim() ? 'trimmed' : 'edited'
}

function argumentsEcho(said: string, echoed: string | null): ArgumentsEcho {
  if (echoed === null) return 'lost'
  if (echoed === said) return 'same'
  return canonicalOrRaw(echoed) === canonicalOrRaw(said) ? 'reserialised' : 'edited'
}
