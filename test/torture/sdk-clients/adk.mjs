// Google's Agent Development Kit over its own Gemini model, streamed: pieces of an answer are contents of their own.
import { Gemini, FunctionTool, InMemoryRunner, LlmAgent, StreamingMode } from '@google/adk'
import { z } from 'zod'

const { KEY, MODEL, PROMPT } = process.env
const shell = new FunctionTool({
  name: 'shell',
  description: 'Runs a command.',
  parameters: z.object({ command: z.string() }),
  execute: ({ command }) => ({ result: `ran ${command}` }),
})
const agent = new LlmAgent({ name: 'tidy', model: new Gemini({ model: MODEL, apiKey: KEY }), tools: [shell] })
const runner = new InMemoryRunner({ agent, appName: 'tidy' })
const session = await runner.sessionService.createSession({ appName: 'tidy', userId: 'u' })
const events = runner.runAsync({
  userId: 'u',
  sessionId: session.id,
  newMessage: { role: 'user', parts: [{ text: PROMPT }] },
  runConfig: { streamingMode: StreamingMode.SSE },
})
let last = ''
for await (const { content, partial, errorMessage } of events) {
  if (errorMessage !== undefined) throw new Error(errorMessage)
  const text = (content?.parts ?? []).map((part) => (part.thought ? '' : (part.text ?? ''))).join('')
  if (partial !== true && text !== '') last = text
}
process.stdout.write(last)
