/** Agent frameworks as they are published for Python, streamed, over the dialects that they speak. */
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { installedPython, startClients } from './clients.ts'

/** By environment: they do not agree about the version of `openai`. */
const requirements = {
  two: ['haystack-ai==3.4.1', 'llama-index-core==0.14.25', 'llama-index-llms-openai-like==0.8.1', 'openai==2.54.0'],
  three: [
    'pydantic-ai-slim[openai,anthropic,google]==2.68.0',
    'openai==3.57.0',
    'anthropic==2.14.0',
    'google-genai==2.34.0',
  ],
}

let clients: Awaited<ReturnType<typeof startClients>>
const pythons: Record<string, string> = {}

beforeAll(async () => {
  clients = await startClients()
  await cp(join(import.meta.dirname, 'python-clients'), clients.directory, { recursive: true })
  const having = Object.entries(requirements).map(async ([name, packages]) => {
    pythons[name] = await installedPython(packages)
  })
  await Promise.all(having)
})
afterAll(() => clients?.[Symbol.asyncDispose]())

describe.each([
  ['Haystack', 'two', ['haystack_chat.py'], 'chat'],
  ['LlamaIndex', 'two', ['llama_index_chat.py'], 'chat'],
  ['Pydantic AI', 'three', ['pydantic_ai_any.py', 'chat'], 'chat'],
  ['Pydantic AI', 'three', ['pydantic_ai_any.py', 'responses'], 'responses'],
  ['Pydantic AI', 'three', ['pydantic_ai_any.py', 'messages'], 'messages'],
  ['Pydantic AI', 'three', ['pydantic_ai_any.py', 'gemini'], 'gemini'],
] as const)('%s', (_name, environment, args, dialect) => {
  it(`extends every prompt under auto, over three steps of tools: ${dialect}`, async () => {
    await clients.expectExtended({ command: pythons[environment] ?? '', args, dialect })
  })
})
