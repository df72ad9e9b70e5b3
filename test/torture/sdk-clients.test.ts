/** Agent frameworks as they are published on npm, with their defaults, over the dialects that they speak. */
import { cp, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { installed, startClients } from './clients.ts'

/** 500 MB with the program that the last one brings. */
const dependencies = {
  ai: '7.0.173',
  '@ai-sdk/openai': '4.0.118',
  '@google/adk': '2.0.0',
  '@openai/agents': '0.20.0',
  '@anthropic-ai/claude-agent-sdk': '0.3.328',
  zod: '4.6.7',
}

let clients: Awaited<ReturnType<typeof startClients>>

beforeAll(async () => {
  clients = await startClients()
  const { directory } = clients
  await cp(join(import.meta.dirname, 'sdk-clients'), directory, { recursive: true })
  const place = await installed({ node: process.versions.modules, dependencies }, async (ran, folder) => {
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }))
    await ran('npm', 'install', '--no-audit', '--no-fund')
  })
  await symlink(join(place, 'node_modules'), join(directory, 'node_modules'))
})
afterAll(() => clients?.[Symbol.asyncDispose]())

describe.each([
  ['Vercel AI SDK', 'vercel.mjs', 'responses'],
  ['Google ADK', 'adk.mjs', 'gemini'],
  ['OpenAI Agents SDK', 'agents.mjs', 'responses'],
  ['Claude Agent SDK', 'claude.mjs', 'messages'],
])('%s', (_name, agent, dialect) => {
  it('extends every prompt under auto, over three steps of tools', async () => {
    await clients.expectExtended({ command: process.execPath, args: [agent], dialect })
  })
})
