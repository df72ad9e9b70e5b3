// OpenAI's Agents SDK over Responses, streamed.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from '@openai/agents'
import { z } from 'zod'

const { ROOT, KEY, MODEL, PROMPT } = process.env
setTracingDisabled(true)
const shell = tool({
  name: 'shell',
  description: 'Runs a command.',
  parameters: z.object({ command: z.string() }),
  execute: async ({ command }) => `ran ${command}`,
})
const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey: KEY, baseURL: `${ROOT}/v1` }) })
const agent = new Agent({ name: 'tidy', model: MODEL, tools: [shell] })
const result = await runner.run(agent, PROMPT, { stream: true })
for await (const _event of result);
await result.completed
process.stdout.write(String(result.finalOutput))
