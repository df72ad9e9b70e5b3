import type { LooseObject } from '../../session/sampling.ts'
import type { AnswerView } from '../contract.ts'
import { type Answer, messageOf } from './answer.ts'

/** A whole completion from an answer that came as a stream, for a retry that asks without `stream`. */
export function completionBody(answer: Answer, view: AnswerView): Buffer {
  return Buffer.from(
    JSON.stringify({
      ...head(answer),
      object: 'chat.completion',
      choices: answer.choices.map((choice) => ({
        index: choice.index,
        message: choice.rawMessage === null ? messageOf(choice) : JSON.parse(choice.rawMessage),
        logprobs: view.wantsLogprobs ? { content: choice.logprobEntries } : null,
        finish_reason: choice.finishReason,
        ...(choice.stopReason === null ? {} : { stop_reason: choice.stopReason }),
      })),
      ...(answer.usage === null ? {} : { usage: answer.usage }),
    }),
  )
}

/** A whole answer as the events of a stream, for engines that must be asked without one. Ends with `[DONE]`. */
export function completionEvents(answer: Answer, view: AnswerView): Buffer[] {
  const events: Buffer[] = []
  const send = (choices: readonly LooseObject[], more: LooseObject = {}) =>
    events.push(event({ ...head(answer), object: 'chat.completion.chunk', choices, ...more }))
  for (const choice of answer.choices) {
    const delta = (part: LooseObject, logprobs: unknown = null, finish: string | null = null) =>
      send([{ index: choice.index, delta: part, logprobs, finish_reason: finish }])
    delta({ role: 'assistant', content: '' })
    if (choice.reasoning !== null) delta({ [choice.reasoningName]: choice.reasoning })
    if (choice.content !== null && choice.content !== '') delta({ content: choice.content })
    if (choice.refusal !== null) delta({ refusal: choice.refusal })
    choice.toolCalls.forEach((call, index) => {
      const fn = { name: call.name, arguments: call.arguments }
      delta({ tool_calls: [{ index, id: call.id ?? '', type: 'function', function: fn }] })
    })
    const logprobs = view.wantsLogprobs ? { content: choice.logprobEntries } : null
    send([
      {
        index: choice.index,
        delta: {},
        logprobs,
        finish_reason: choice.finishReason,
        ...(choice.stopReason === null ? {} : { stop_reason: choice.stopReason }),
      },
    ])
  }
  if (view.wantsUsage && answer.usage !== null) send([], { usage: answer.usage })
  events.push(Buffer.from('data: [DONE]\n\n'))
  return events
}

function head(answer: Answer): LooseObject {
  return { id: answer.id ?? '', created: answer.created ?? 0, model: answer.model ?? '' }
}

function event(body: LooseObject): Buffer {
  return Buffer.from(`data: ${JSON.stringify(body)}\n\n`)
}
