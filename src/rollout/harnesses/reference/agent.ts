import type OpenAI from 'openai'
import type { ToolOutcome } from '../../../envs/index.ts'
import { pictureParts, runTool, withChat } from '../chat.ts'
import type { HarnessReport, HostContext, HostHarness } from '../contract.ts'
import { defineHarness } from '../define.ts'

export interface ReferenceOptions {
  /** Model calls after which the attempt ends as `horizon`. Default 60. */
  readonly maxTurns?: number
}

type Message = OpenAI.ChatCompletionMessageParam
type Answer = OpenAI.ChatCompletionMessage
type FunctionCall = OpenAI.ChatCompletionMessageFunctionToolCall

const fallbackPrompt = 'Solve the task that the user gives, with the tools you have. Say in one sentence what you did.'

/**
 * The built-in agent: a small tool-calling loop on the `openai` package. It runs on the host over its session's URL, so
 * that the proxy records it like any other harness; its tools run in the task's box.
 */
export function referenceAgent(options: ReferenceOptions = {}): HostHarness {
  const maxTurns = options.maxTurns ?? 60
  return defineHarness({
    name: 'reference',
    apiVersion: 1,
    version: '1',
    dialect: 'chat',
    replays: true,
    restores: true,
    converses: true,
    place: 'host',
    box: 'tools',
    run: (context) => withChat(context, (client) => converse(context, client, maxTurns)),
  })
}

async function converse(context: HostContext, client: OpenAI, maxTurns: number): Promise<HarnessReport> {
  const { model, tools, signal } = context
  const messages: Message[] =
    context.goesOn === null
      ? [
          { role: 'system' as const, content: context.systemPrompt ?? fallbackPrompt },
          { role: 'user' as const, content: context.prompt },
        ]
      : messagesOf(context.goesOn)
  const before = messages.filter(({ role }) => role === 'assistant').length
  const offered = tools.map(({ name, description, inputSchema }) => ({
    type: 'function' as const,
    function: { name, description, parameters: { ...inputSchema } },
  }))
  for (let turn = before; turn < maxTurns; turn += 1) {
    const asked = { model, messages, ...(offered.length === 0 ? {} : { tools: offered }) }
    const { data, request_id: callId } = await client.chat.completions.create(asked, { signal }).withResponse()
    const choice = data.choices[0]
    if (choice === undefined) return { end: 'harness_crash', detail: 'the answer has no choice', answer: null }
    const calls = functionCalls(choice.message)
    if (calls.length === 0) {
      const cut = choice.finish_reason === 'length' ? ', the last answer cut at its token limit' : ''
      const reply = (await context.hear?.(choice.message.content)) ?? null
      if (reply === null) return { end: 'completed', detail: `${turn + 1} turns${cut}`, answer: choice.message.content }
      messages.push(choice.message, { role: 'user', content: reply })
      continue
    }
    const outcomes = await answerCalls(context, calls, callId)
    messages.push(choice.message, ...outcomes.map(toolMessage), ...picturesMessage(outcomes))
  }
  return { end: 'horizon', detail: `${maxTurns} turns without a final answer`, answer: null }
}

/** Of a request that this harness asked. */
function messagesOf(body: Uint8Array): Message[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this very program wrote it
  return (JSON.parse(Buffer.from(body).toString()) as { readonly messages: Message[] }).messages
}

function functionCalls(message: Answer): readonly FunctionCall[] {
  return (message.tool_calls ?? []).filter((call) => call.type === 'function')
}

interface Answered {
  readonly call: FunctionCall
  readonly outcome: ToolOutcome
}

/** Runs the calls of one answer side by side; their results stand in the order of the calls. */
function answerCalls(
  context: HostContext,
  calls: readonly FunctionCall[],
  callId: string | null,
): Promise<readonly Answered[]> {
  return Promise.all(
    calls.map(async (call) => ({
      call,
      outcome: await runTool(
        context,
        { id: call.id, name: call.function.name, argumentsText: call.function.arguments },
        callId,
      ),
    })),
  )
}

function toolMessage({ call, outcome }: Answered): Message {
  return { role: 'tool', tool_call_id: call.id, content: outcome.text }
}

/** Pictures follow the results as the user's: a tool message of this API holds text only. */
function picturesMessage(answered: readonly Answered[]): readonly Message[] {
  const parts = answered.flatMap(({ outcome }) => pictureParts(outcome))
  return parts.length === 0 ? [] : [{ role: 'user', content: parts }]
}
