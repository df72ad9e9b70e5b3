/** A harness: an agent loop on the host in plain `fetch`, whose tools run in the task's box. Listed under `harnesses`. */
import { defineHarness, type HostContext, runToolCall } from 'paddock-rl/harness'

interface Call {
  readonly id: string
  readonly function: { readonly name: string; readonly arguments: string }
}

async function ask({ baseUrl, apiKey, model, tools, signal }: HostContext, messages: readonly object[]) {
  const answer = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model,
      messages,
      tools: tools.map(({ name, description, inputSchema: parameters }) => ({
        type: 'function',
        function: { name, description, parameters },
      })),
    }),
    signal,
  })
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`)
  const { choices } = (await answer.json()) as {
    choices: [{ message: { content: string | null; tool_calls?: readonly Call[] } }]
  }
  return choices[0].message
}

export default defineHarness({
  name: 'plain-loop',
  apiVersion: 1,
  version: '1',
  dialect: 'chat',
  place: 'host',
  box: 'tools',
  run: async (context) => {
    const { task, attempt, box, tools, signal } = context
    const messages: object[] = [{ role: 'user', content: context.prompt }]
    for (let turn = 0; turn < 20; turn += 1) {
      const message = await ask(context, messages)
      messages.push(message)
      const calls = message.tool_calls ?? []
      if (calls.length === 0) return { end: 'completed', detail: `${turn + 1} turns`, answer: message.content }
      if (box === null) return { end: 'harness_crash', detail: 'there is no box', answer: null }
      for (const {
        id,
        function: { name, arguments: argumentsText },
      } of calls) {
        const { text } = await runToolCall(tools, { name, argumentsText }, { task, attempt, box, signal })
        messages.push({ role: 'tool', tool_call_id: id, content: text })
      }
    }
    return { end: 'horizon', detail: '20 turns', answer: null }
  },
})
