// One question, one answer: the smallest harness without tools. It knows three variables and nothing of Paddock.
// The system message and the example are its own; standard input is the question, and what the model says is printed as it is.
import { text } from 'node:stream/consumers'

const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL } = process.env
const messages = [
  { role: 'system', content: 'Repeat.' },
  { role: 'user', content: 'sun ink' },
  { role: 'assistant', content: 'sun ink' },
  { role: 'user', content: await text(process.stdin) },
]
const response = await fetch(`${OPENAI_BASE_URL}/chat/completions`, {
  method: 'POST',
  headers: { 'content-type': 'application/json', authorization: `Bearer ${OPENAI_API_KEY}` },
  body: JSON.stringify({ model: OPENAI_MODEL, messages, max_tokens: 8 }),
})
if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
process.stdout.write((await response.json()).choices[0].message.content)
