/** Agent frameworks as they are published, with their defaults, over the dialects that they speak. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { script, startEngine, startProxy, type TestEngine, type TestProxy } from '../proxy/support.ts'
import { expectFaithful, rows } from '../splice/support.ts'

/** Fetched from npm, 500 MB with the program that the last one brings. */
const dependencies = {
  ai: '7.0.173',
  '@ai-sdk/openai': '4.0.118',
  '@google/adk': '2.0.0',
  '@openai/agents': '0.20.0',
  '@anthropic-ai/claude-agent-sdk': '0.3.328',
  zod: '4.6.7',
}

const model = 'scripted-hermes'
const prompt = 'Tidy the house.'
const last = 'It is tidy, “all of it”.'

let engine: TestEngine
let paddock: TestProxy
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paddock-sdk-'))
  await cp(join(import.meta.dirname, 'sdk-clients'), directory, { recursive: true })
  await writeFile(join(directory, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }))
  const installed = await ran('npm', ['install', '--no-audit', '--no-fund'], process.env)
  if (installed.code !== 0) throw new Error(installed.err)
  engine = await startEngine('--model', model)
  paddock = await startProxy(engine.url)
  const steps = [
    { say: 'First I look.' },
    { shell: 'echo "a b"' },
    { parallel: [{ shell: "printf '%s\\n' 1.0" }, { shell: 'echo ünï 漢字 🙂' }] },
    { shell: 'ls -a | head -3' },
    { say: last },
  ]
  await engine.control('/scripts', script(prompt, steps))
})
afterAll(async () => {
  await paddock?.[Symbol.asyncDispose]()
  await engine?.stop()
  await rm(directory, { recursive: true, force: true })
})

describe.each([
  ['Vercel AI SDK', 'vercel.mjs', 'responses'],
  ['Google ADK', 'adk.mjs', 'gemini'],
  ['OpenAI Agents SDK', 'agents.mjs', 'responses'],
  ['Claude Agent SDK', 'claude.mjs', 'messages'],
])('%s', (_name, agent, dialect) => {
  it('extends every prompt under auto, over three steps of tools', async () => {
    const session = await paddock.open({ policy: { strategy: 'auto', model } })
    const root = session.url.replace(/\/v1$/, '')
    const { code, out, err } = await ran(process.execPath, [agent], {
      PATH: process.env['PATH'],
      HOME: directory,
      ROOT: root,
      GOOGLE_GEMINI_BASE_URL: root,
      KEY: session.key,
      MODEL: dialect === 'messages' ? 'claude-opus-4-5' : model,
      PROMPT: prompt,
    })
    // Some log to their output before.
    expect([code, out.trim().split('\n').at(-1)], err).toEqual([0, last])
    const log = await session.log()
    const main = log.calls.filter(({ intent }) => intent.callClass === 'main')
    expect(new Set(main.map(({ intent }) => intent.dialect))).toEqual(new Set([dialect]))
    expect(new Set(main.map(({ intent }) => intent.strategy))).toEqual(new Set(['splice']))
    expect(main).toHaveLength(4)
    expect(main.flatMap(({ commit }) => commit?.forks ?? [])).toEqual([])
    expect(main.flatMap(({ commit }) => commit?.findings ?? [])).toEqual([])
    expect(
      rows({ ...log, segments: log.segments.filter(({ callId }) => main.some(({ intent }) => intent.id === callId)) }),
    ).toBe(1)
    await expectFaithful(log, engine)
  })
})

async function ran(command: string, args: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(command, args, { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out, err }
}
