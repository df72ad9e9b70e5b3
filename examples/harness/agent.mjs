// An agent in thirty lines. It knows three variables and nothing of Paddock; any OpenAI-compatible server will do.
import { spawnSync } from 'node:child_process'

const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL, PADDOCK_PROMPT } = process.env
const question = PADDOCK_PROMPT ?? 'How many days does February 2028 have? Use the shell.'
const messages = [{ role: 'user', content: question }]
const parameters = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }
const tools = [{ type: 'function', function: { name: 'shell', description: 'Runs one line of sh.', parameters } }]

for (let turn = 0; turn < 10; turn += 1) {
  const response = await fetch(`${OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${OPENAI_API_KEY}` },
    body: JSON.stringify({ model: OPENAI_MODEL, messages, tools }),
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  const { message } = (await response.json()).choices[0]
  messages.push(message)
  if (!message.tool_calls?.length) {
    console.log(message.content)
    break
  }
  for (const call of message.tool_calls) {
    const { command } = JSON.parse(call.function.arguments)
    console.log(`$ ${command}`)
    const { stdout, stderr } = spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8', timeout: 10_000 })
    messages.push({ role: 'tool', tool_call_id: call.id, content: stdout + stderr })
  }
}
