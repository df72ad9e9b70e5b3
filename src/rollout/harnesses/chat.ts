import type OpenAI from 'openai'
import type { Agent } from 'undici'
import { isPaddockError, PaddockError } from '../../core/index.ts'
import { runToolCall, type ToolOutcome } from '../../envs/index.ts'
import { toldOf } from '../pictures.ts'
import { tellRewards } from '../rewards-so-far.ts'
import type { HarnessReport, HostContext } from './contract.ts'

/** Runs a loop on the host with a client of its session, and makes a report of what it throws. */
export async function withChat(
  context: HostContext,
  converse: (client: OpenAI) => Promise<HarnessReport>,
): Promise<HarnessReport> {
  const { client, dispatcher, APIError } = await chatClient(context)
  try {
    return await converse(client)
  } catch (error) {
    if (context.signal.aborted) throw context.signal.reason
    return reportError(error, APIError)
  } finally {
    await dispatcher.destroy()
  }
}

/** A client of a session; its packages are loaded here, because most of what loads this room talks to no session. */
export async function chatClient({ baseUrl, apiKey }: Pick<HostContext, 'baseUrl' | 'apiKey'>): Promise<{
  readonly client: OpenAI
  readonly dispatcher: Agent
  readonly APIError: typeof OpenAI.APIError
}> {
  const [{ APIError, OpenAI: Client }, undici] = await Promise.all([import('openai'), import('undici')])
  // A model may think for longer than the five minutes after which fetch gives up by itself.
  const dispatcher = new undici.Agent({ headersTimeout: 0, bodyTimeout: 0 })
  const client = new Client({
    baseURL: baseUrl,
    apiKey,
    timeout: 2 ** 31 - 1,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- undici's fetch is the platform's, typed apart
    fetch: ((url, init) => undici.fetch(url as string, { ...(init as object), dispatcher })) as typeof fetch,
  })
  return { client, dispatcher, APIError }
}

/** A call of a tool as a model wrote it. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly argumentsText: string
}

/** Throws `BOX_DEAD` when the box or the tool's service failed: nothing can be said of the agent then. */
export async function runTool(context: HostContext, call: ToolCall, callId: string | null): Promise<ToolOutcome> {
  const { task, attempt, box, tools, signal, emit, keep } = context
  const { name, argumentsText } = call
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
  tellRewards(emit, outcome, callId)
  if (outcome.status === 'infra')
    throw outcome.fault ?? new PaddockError('BOX_DEAD', `The tool ${name} could not run: ${outcome.text}`)
  return outcome
}

/** What the harness itself makes of an error; the rollout judges faults of engine and box by its own knowledge. */
function reportError(error: unknown, APIError: typeof OpenAI.APIError): HarnessReport {
  if (isPaddockError(error) && error.family === 'infra') throw error
  const detail = error instanceof Error ? error.message : String(error)
  const overflow =
    error instanceof APIError && (error.code === 'CONTEXT_OVERFLOW' || /maximum context length/i.test(detail))
  return { end: overflow ? 'context_overflow' : 'harness_crash', detail, answer: null }
}

/** Pictures as parts of a message of the user's: a tool message of the chat API holds text only. */
export function pictureParts({ pictures = [] }: ToolOutcome): OpenAI.ChatCompletionContentPartImage[] {
  return pictures.map(({ mediaType, data }) => ({
    type: 'image_url' as const,
    image_url: { url: `data:${mediaType};base64,${Buffer.from(data).toString('base64')}` },
  }))
}
