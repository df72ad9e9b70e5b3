import type OpenAI from 'openai'
import { isPaddockError, PaddockError } from '../../../core/index.ts'
import { noteTags, runToolCall } from '../../../envs/index.ts'
import { tellRewards } from '../../rewards-so-far.ts'
import { chatClient } from '../chat.ts'
import type { HarnessReport, HostContext, HostHarness } from '../contract.ts'
import { defineHarness } from '../define.ts'
import { firstRows, instructions, parseTags, resultTurn, type TagProtocol } from './protocol.ts'

/**
 * An agent whose tools are tags in its text, for models that were trained so: it runs on the host like the reference
 * agent, over its session's URL, and uses `execute_sql` and `submit_sql` of the task's environment. How well it kept the
 * format goes into the verdict as the component `format`.
 */
export function tagAgent(protocol: TagProtocol): HostHarness {
  return defineHarness({
    name: protocol.name,
    apiVersion: 1,
    version: '1',
    dialect: 'chat',
    replays: true,
    place: 'host',
    box: 'tools',
    run: async (context) => {
      const { client, dispatcher, APIError } = await chatClient(context)
      try {
        return await converse(context, client, protocol)
      } catch (error) {
        if (context.signal.aborted) throw context.signal.reason
        if (isPaddockError(error) && error.family === 'infra') throw error
        const detail = error instanceof Error ? error.message : String(error)
        const overflow = error instanceof APIError && error.code === 'CONTEXT_OVERFLOW'
        return { end: overflow ? 'context_overflow' : 'harness_crash', detail, answer: null }
      } finally {
        await dispatcher.destroy()
      }
    },
  })
}

async function converse(context: HostContext, client: OpenAI, protocol: TagProtocol): Promise<HarnessReport> {
  const { model, signal, task, box } = context
  if (box === null) throw new PaddockError('HARNESS_INVALID', `${protocol.name} needs an environment with execute_sql`)
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'system', content: instructions(protocol, engineIn(context)) },
    { role: 'user', content: task.instruction },
  ]
  let malformed = 0
  for (let turn = 1; turn <= protocol.maxTurns; turn += 1) {
    // The tag itself stays in the text, so that the next prompt extends what was sampled.
    const asked = {
      model,
      messages,
      stop: [`</${protocol.run}>`, `</${protocol.solve}>`],
      include_stop_str_in_output: true,
    }
    const { data, request_id: callId } = await client.chat.completions.create(asked, { signal }).withResponse()
    const answer = data.choices[0]?.message
    if (answer === undefined) return { end: 'harness_crash', detail: 'the answer has no choice', answer: null }
    const action = parseTags(textOf(answer, protocol), protocol)
    if (action.kind === 'malformed') malformed += 1
    noteTags(box, { turns: turn, malformed })
    const shown = await act(context, action, callId)
    if (action.kind === 'solve') {
      return { end: 'completed', detail: `${turn} turns, ${malformed} malformed`, answer: answer.content }
    }
    const left = protocol.maxTurns - turn
    messages.push(answer, { role: 'user', content: resultTurn(firstRows(shown, protocol.shownRows), left, protocol) })
  }
  return { end: 'horizon', detail: `${protocol.maxTurns} turns without a solution`, answer: null }
}

async function act(
  { task, attempt, box, tools, signal, emit }: HostContext,
  action: ReturnType<typeof parseTags>,
  callId: string | null,
): Promise<string> {
  if (action.kind === 'malformed') return `The turn does not count: ${action.why}.`
  if (box === null) return ''
  const name = action.kind === 'run' ? 'execute_sql' : 'submit_sql'
  const startedAt = performance.now()
  const outcome = await runToolCall(
    tools,
    { name, argumentsText: JSON.stringify({ sql: action.sql }) },
    { task, attempt, box, signal },
  )
  emit({
    kind: 'tool_result',
    callId,
    toolCallId: `${callId ?? ''}:${name}`,
    tool: name,
    status: outcome.status,
    durationMs: Math.round(performance.now() - startedAt),
    result: outcome.text,
  })
  tellRewards(emit, outcome, callId)
  if (outcome.status === 'infra') throw new PaddockError('BOX_DEAD', `The tool ${name} could not run: ${outcome.text}`)
  return outcome.text
}

/** What was written, thoughts included: engines with a reasoning parser hand them out beside the text. */
function textOf(answer: OpenAI.ChatCompletionMessage, { think }: TagProtocol): string {
  const thought: unknown = Reflect.get(answer, 'reasoning') ?? Reflect.get(answer, 'reasoning_content')
  return `${typeof thought === 'string' ? `<${think}>${thought}</${think}>` : ''}${answer.content ?? ''}`
}

/** The engine as the environment's own tool names it. */
function engineIn({ tools }: HostContext): string {
  const described = tools.find(({ name }) => name === 'execute_sql')?.description ?? ''
  return /\b(SQLite|DuckDB|PostgreSQL)\b/.exec(described)?.[1] ?? 'SQL'
}
