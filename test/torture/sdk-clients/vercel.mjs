// Vercel AI SDK in responses mode with its defaults: streamed, `store` on, items named by their ids.
import { createOpenAI } from '@ai-sdk/openai'
import { stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'

const { ROOT, KEY, MODEL, PROMPT } = process.env
const openai = createOpenAI({ baseURL: `${ROOT}/v1`, apiKey: KEY })
const shell = tool({
  description: 'Runs a command.',
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }) => `ran ${command}`,
})
const result = streamText({
  model: openai(MODEL),
  tools: { shell },
  stopWhen: stepCountIs(10),
  prompt: PROMPT,
  onError: ({ error }) => {
    throw error
  },
})
process.stdout.write(await result.text)
