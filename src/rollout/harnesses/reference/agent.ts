import OpenAI from 'openai'
import { Agent, fetch as undiciFetch } from 'undici'
import { isPaddockError, PaddockError } from '../../../core/index.ts'
import { runToolCall, type ToolOutcome } from '../../../envs/index.ts'
import type { HarnessReport, HostContext, HostHarness } from '../contract.ts'
import { toldOf } from '../../pictures.ts'
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
    place: 'host',
    box: 'tools',
    run: async (context) => {
      // A model may think for longer than the five minutes after which fetch gives up by itself.
      const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
      try {
        return await converse(context, clientOf(context, dispatcher), maxTurns)
      } catch (error) {
        if (context.signal.aborted) throw context.signal.reason
        return reportError(error)
      } finally {
        await dispatcher.destroy()
      }
    },
  })
}

function clientOf({ baseUrl, apiKey }: HostContext, dispatcher: Agent): OpenAI {
  return new OpenAI({
    baseURL: baseUrl,
    apiKey,
    timeout: 2 ** 31 - 1,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- undici's fetch is the platform's, typed apart
    fetch: ((url, init) => undiciFetch(url as string, { ...(init as object), dispatcher })) as typeof fetch,
  })
}

async function converse(context: HostContext, client: OpenAI, maxTurns: number): Promise<HarnessReport> {
  const { model, tools, signal } = context
  const messages: Message[] = [
    { role: 'system', content: context.systemPrompt ?? fallbackPrompt },
    { role: 'user', content: context.prompt },
  ]
  const offered = tools.map(({ name, description, inputSchema }) => ({
    type: 'function' as const,
    function: { name, description, parameters: { ...inputSchema } },
  }))
  for (let turn = 0; turn < maxTurns; turn += 1) {
    const asked = { model, messages, ...(offered.length === 0 ? {} : { tools: offered }) }
    const { data, request_id: callId } = await client.chat.completions.create(asked, { signal }).withResponse()
    const choice = data.choices[0]
    if (choice === undefined) return { end: 'harness_crash', detail: 'the answer has no choice', answer: null }
    const calls = functionCalls(choice.message)
    if (calls.length === 0) {
      const cut = choice.finish_reason === 'length' ? ', the last answer cut at its token limit' : ''
      return { end: 'completed', detail: `${turn + 1} turns${cut}`, answer: choice.message.content }
    }
    const outcomes = await answerCalls(context, calls, callId)
    messages.push(choice.message, ...outcomes.map(toolMessage), ...picturesMessage(outcomes))
    await context.atTurn()
  }
  return { end: 'horizon', detail: `${maxTurns} turns without a final answer`, answer: null }
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
  return Promise.all(calls.map(async (call) => ({ call, outcome: await runTool(context, call, callId) })))
}

function toolMessage({ call, outcome }: Answered): Message {
  return { role: 'tool', tool_call_id: call.id, content: outcome.text }
}

/** Pictures follow the results as the user's: a tool message of this API holds text only. */
function picturesMessage(answered: readonly Answered[]): readonly Message[] {
  const parts = answered
    .flatMap(({ outcome }) => outcome.pictures ?? [])
    .map(({ mediaType, data }) => ({
      type: 'image_url' as const,
      image_url: { url: `data:${mediaType};base64,${Buffer.from(data).toString('base64')}` },
    }))
  return parts.length === 0 ? [] : [{ role: 'user', content: parts }]
}

/** Throws `BOX_DEAD` when the box or the tool's service failed: nothing can be said of the agent then. */
async function runTool(context: HostContext, call: FunctionCall, callId: string | null): Promise<ToolOutcome> {
  const { task, attempt, box, tools, signal, emit, keep } = context
  const { name, arguments: argumentsText } = call.function
  const startedAt = performance.now()
  const outcome =
    box === null
      ? { status: 'error' as const, text: 'There are no tools here.' }
      : await runToolCall(tools, { name, argumentsText }, { task, attempt, box, signal })
  const durationMs = Math.round(performance.now() - startedAt)
  const told = await toldOf(outcome, keep)
  emit({
    kind: 'tool_result',
    // The proxy names the call of an answer in its `x-request-id`.
    callId,
    toolCallId: call.id,
    tool: name,
    status: outcome.status,
    durationMs,
    result: outcome.text,
    ...told,
  })
  if (outcome.status === 'infra') throw new PaddockError('BOX_DEAD', `The tool ${name} could not run: ${outcome.text}`)
  return outcome
}

/** What the harness itself makes of an error; the rollout judges faults of engine and box by its own knowledge. */
function reportError(error: unknown): HarnessReport {
  if (isPaddockError(error) && error.family === 'infra') throw error
  const detail = error instanceof Error ? error.message : String(error)
  const overflow =
    error instanceof OpenAI.APIError && (error.code === 'CONTEXT_OVERFLOW' || /maximum context length/i.test(detail))
  return { end: overflow ? 'context_overflow' : 'harness_crash', detail, answer: null }
}
