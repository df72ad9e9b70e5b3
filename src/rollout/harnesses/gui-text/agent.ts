import type OpenAI from 'openai'
import { PaddockError } from '../../../core/index.ts'
import type { ToolOutcome } from '../../../envs/index.ts'
import { pictureParts, runTool, withChat } from '../chat.ts'
import type { HarnessReport, HostContext, HostHarness } from '../contract.ts'
import { defineHarness } from '../define.ts'

export interface GuiTextOptions {
  /** Model calls after which the attempt ends as `horizon`. Default 60. */
  readonly maxTurns?: number
}

/**
 * An agent for models that write their actions as text: it shows the screen, has what the model answers done by the tool that
 * takes text (`computer` of a gui task with a schema), and shows the screen again, until the attempt has ended. It runs on the
 * host like the reference agent. What cannot be read as an action is answered with what would be right. Messages are only
 * added, so that each prompt extends what was sampled.
 */
export function guiTextAgent(options: GuiTextOptions = {}): HostHarness {
  const maxTurns = options.maxTurns ?? 60
  return defineHarness({
    name: 'gui-text',
    apiVersion: 1,
    version: '1',
    dialect: 'chat',
    actsInText: true,
    place: 'host',
    box: 'tools',
    run: (context) => withChat(context, (client) => converse(context, client, maxTurns)),
  })
}

async function converse(context: HostContext, client: OpenAI, maxTurns: number): Promise<HarnessReport> {
  const { model, tools, signal, prompt } = context
  const tool = tools.find(({ spoken }) => spoken !== undefined)
  if (tool?.spoken === undefined) {
    throw new PaddockError('HARNESS_INVALID', 'The harness gui-text has no tool that takes text', {
      fix: 'Give the tasks a "schema" of text: ui-tars, glm, holo, seed, osworld-pyautogui, browsergym or qwen.',
    })
  }
  const { name } = tool
  const first = await runTool(context, { id: 'first', name, argumentsText: '{"action":"screenshot"}' }, null)
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    {
      role: 'user',
      content: [{ type: 'text', text: `${tool.spoken}\n\n## User Instruction\n${prompt}` }, ...seen(first)],
    },
  ]
  for (let turn = 1; turn <= maxTurns; turn += 1) {
    const { data, request_id: callId } = await client.chat.completions
      .create({ model, messages }, { signal })
      .withResponse()
    const message = data.choices[0]?.message
    if (message === undefined) return { end: 'harness_crash', detail: 'the answer has no choice', answer: null }
    const text = message.content ?? ''
    const call = { id: `${callId ?? turn}:${name}`, name, argumentsText: JSON.stringify({ text }) }
    const outcome = await runTool(context, call, callId)
    const ended = outcome.facts?.['ended']
    if (ended === 'limit') return { end: 'horizon', detail: outcome.text, answer: text }
    if (ended !== undefined) return { end: 'completed', detail: `${turn} turns, ${ended}`, answer: text }
    messages.push(message, { role: 'user', content: seen(outcome) })
  }
  return { end: 'horizon', detail: `${maxTurns} turns without an end`, answer: null }
}

/** The screen as it is now; words go with it only where something went wrong, or where there is no picture. */
function seen(outcome: ToolOutcome): OpenAI.ChatCompletionContentPart[] {
  const pictures = pictureParts(outcome)
  return outcome.status === 'ok' && pictures.length > 0 ? pictures : [{ type: 'text', text: outcome.text }, ...pictures]
}
