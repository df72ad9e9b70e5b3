// An agent that hands its history back in other words: pretty-printed arguments, upper-case text; told `tidy`, without blanks at
// the edges of its text and without a `cd` to where it is. It never asks again.
import { spawnSync } from 'node:child_process'

const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL, PADDOCK_PROMPT } = process.env
const parameters = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }
const tools = [{ type: 'function', function: { name: 'shell', parameters } }]
const tidies = process.argv[2] === 'tidy'
const messages = [{ role: 'user', content: PADDOCK_PROMPT }]

for (;;) {
  const response = await fetch(`${OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${OPENAI_API_KEY}` },
    body: JSON.stringify({ model: OPENAI_MODEL, messages, tools }),
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  const { message } = (await response.json()).choices[0]
  if (!message.tool_calls?.length) break
  const calls = message.tool_calls
  const told = calls.map((call) => ({
    ...call,
    function: { ...call.function, arguments: retold(call.function.arguments) },
  }))
  const content = tidies ? message.content?.trim() : message.content?.toUpperCase()
  messages.push({ ...message, content: content ?? null, tool_calls: told })
  for (const call of calls) {
    const { command } = JSON.parse(call.function.arguments)
    const { stdout, stderr } = spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8' })
    messages.push({ role: 'tool', tool_call_id: call.id, content: stdout + stderr })
  }
}

function retold(text) {
  const { command } = JSON.parse(text)
  if (!tidies) return JSON.stringify({ command }, null, 4)
  return command.startsWith('cd /workspace && ') ? JSON.stringify({ command: command.slice(17) }) : text
}
