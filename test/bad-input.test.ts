/**
 * Whatever is wrong, the answer is one clear error with its code and its fix, and nothing that was recorded is lost. The
 * real programs, a real socket each.
 */
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { catalogue } from '../src/core/index.ts'
import { type ScriptedEngine, startScriptedEngine } from '../src/cli/scripted.ts'
import { paddock, serve, type Serving } from './cli/here.ts'
import { chat, paddock as paddockProcess } from './cli/paddock.ts'
import { tempDir } from './fixtures/temp-dir.ts'

const task = fileURLToPath(new URL('../examples/tasks/terminal/log-forensics', import.meta.url))
const messages = [{ role: 'user', content: 'hello' }]

let directory: string
let data: string
let engine: ScriptedEngine
let serving: Serving

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  await writeFile(join(directory, 'small.config.ts'), 'export default { proxy: { maxBodyBytes: 20000 } }')
  await writeFile(join(directory, 'broken.config.ts'), 'export default { engine: { modle: "x" } }')
  engine = await startScriptedEngine({ profile: 'scripted-hermes', seed: 0, journal: join(directory, 'journal.jsonl') })
  serving = await serve(data, ['--engine', engine.url, '--config', join(directory, 'small.config.ts')])
  // What must still be there at the end.
  expect((await chat(serving.ready, { messages })).status).toBe(200)
})
afterAll(async () => {
  await serving.stop()
  await engine[Symbol.asyncDispose]()
})

interface Told {
  readonly status: number
  readonly code: string
  readonly message: string
}

async function told(answer: Promise<Response>): Promise<Told> {
  const response = await answer
  const text = await response.text()
  // A stream that broke carries its error as the last event.
  const last = text.includes('data: ')
    ? (text.split('data: ').findLast((part) => part.includes('"error"')) ?? '')
    : text
  const body = JSON.parse(last) as { error: { code: string; message: string } }
  return { status: response.status, ...body.error }
}

function raw(url: string, body: string): Promise<Response> {
  const key = serving.ready.env.OPENAI_API_KEY
  return fetch(url, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body })
}

async function fault(order: object): Promise<void> {
  const set = await fetch(`${engine.control}/faults`, { method: 'POST', body: JSON.stringify(order) })
  expect(set.ok).toBe(true)
}

const base = () => `${serving.ready.env.OPENAI_BASE_URL}/chat/completions`

const requests: readonly [string, number, keyof typeof catalogue, () => Promise<Response>][] = [
  ['malformed JSON', 400, 'BODY_INVALID_JSON', () => raw(base(), '{"messages": [')],
  ['a body of another shape', 400, 'BODY_INVALID_SHAPE', () => raw(base(), '{"messages": "hello"}')],
  [
    'an unknown session',
    404,
    'SESSION_UNKNOWN',
    () => raw(base().replace(serving.ready.sessionId, '01a1fadd-3411-7000-a8c3-fcac2b92f671'), '{}'),
  ],
  ['an oversized body', 413, 'BODY_TOO_LARGE', () => raw(base(), JSON.stringify({ pad: 'x'.repeat(30_000) }))],
  [
    'a native route of the engine',
    404,
    'ROUTE_DENIED',
    () => raw(`${serving.ready.inference}/s/${serving.ready.sessionId}/tokenize`, '{}'),
  ],
  [
    'an engine that answers 500',
    500,
    'ENGINE_ERROR',
    async () => {
      await fault({ kind: 'http_error', status: 500 })
      return chat(serving.ready, { messages })
    },
  ],
  [
    'an engine that dies in the middle of a stream',
    200,
    'ENGINE_DIED',
    async () => {
      await fault({ kind: 'die', at: 'mid_token', token: 2 })
      return chat(serving.ready, { messages, stream: true })
    },
  ],
]

describe('bad requests', () => {
  it.each(requests)('%s: %i %s', async (_what, status, code, send) => {
    const error = await told(send())
    // An engine that dies before the first byte has left is told by a real 502, afterwards inside the stream.
    expect(error).toMatchObject({ code, status: code === 'ENGINE_DIED' ? expect.toBeOneOf([status, 502]) : status })
    // An answer of the engine keeps the engine's own words; every other message ends with what to do.
    if (code === 'ENGINE_ERROR') expect(error.message).toContain('ordered fault')
    else expect(error.message).toMatch(/Fix: \S/)
  })

  it('an engine that is down: 502 ENGINE_UNREACHABLE, at a call and at the start', async () => {
    await engine[Symbol.asyncDispose]()
    const error = await told(chat(serving.ready, { messages }))
    expect(error).toMatchObject({ status: 502, code: 'ENGINE_UNREACHABLE' })
    expect(error.message).toMatch(/Fix: \S/)
    const started = await paddock(['serve', '--engine', engine.url, '--data', join(directory, 'other'), '--port', '0'])
    expect(started).toMatchObject({ code: 4, err: expect.stringMatching(/^ENGINE_UNREACHABLE: .*Fix: .*\n$/) })
  })

  it('nothing recorded is lost: the good call, and every failed one that reached the engine, with its outcome', async () => {
    expect((await serving.stop()).code).toBe(0)
    const shown = await paddock(['show', serving.ready.sessionId, '--json', '--data', data])
    const { calls } = JSON.parse(shown.out) as { calls: { outcome: { kind: string; code?: string } }[] }
    const outcomes = calls.map(({ outcome }) => outcome.code ?? outcome.kind)
    expect(outcomes[0]).toBe('complete')
    expect(outcomes).toEqual(expect.arrayContaining(['ENGINE_ERROR', 'ENGINE_DIED', 'ENGINE_UNREACHABLE']))
    expect(await paddock(['fsck', '--data', data])).toMatchObject({ code: 0 })
  })
})

async function taskWith(change: (toml: string) => string): Promise<string> {
  const path = await mkdtemp(join(directory, 'task-'))
  await cp(task, path, { recursive: true })
  const toml = join(path, 'task.toml')
  await writeFile(toml, change(await readFile(toml, 'utf8')))
  return path
}

const run = (path: string) => ['run', path, '--data', join(directory, 'runs')]

const commands: readonly [
  string,
  number,
  keyof typeof catalogue,
  string,
  () => Promise<readonly [readonly string[], Readonly<Record<string, string>>?]>,
][] = [
  [
    'Docker is down',
    3,
    'SANDBOX_UNAVAILABLE',
    'ocker',
    async () => [run(task), { DOCKER_HOST: `unix://${directory}/no-docker.sock` }],
  ],
  [
    'a task.toml that does not parse',
    2,
    'TASK_INVALID',
    'task.toml',
    async () => [run(await taskWith((toml) => toml.replace('[agent]', '[agent')))],
  ],
  [
    'a key that task.toml does not know',
    2,
    'TASK_INVALID',
    'timeout_sec',
    async () => [run(await taskWith((toml) => toml.replace('timeout_sec = 600', 'timeout_secs = 600')))],
  ],
  [
    'a Harbor task that needs the network',
    2,
    'TASK_UNSUPPORTED',
    'network_mode',
    async () => [run(await taskWith((toml) => toml.replace('"no-network"', '"public"')))],
  ],
  [
    'a broken configuration',
    2,
    'CONFIG_INVALID',
    'Did you mean `model`?',
    async () => [['gc', '--config', join(directory, 'broken.config.ts')]],
  ],
  ['an unknown harness', 2, 'HARNESS_UNKNOWN', 'reference', async () => [[...run(task), '--harness', 'refrence']]],
  ['an unknown environment', 2, 'ENVIRONMENT_UNKNOWN', 'terminal', async () => [[...run(task), '--env', 'terminl']]],
  ['tasks that are not there', 2, 'TASK_INVALID', 'nowhere', async () => [run(join(directory, 'nowhere'))]],
]

describe('bad commands', () => {
  it.each(commands)('%s: exit code %i, %s', async (_what, exit, code, says, make) => {
    const [args, env] = await make()
    // Where Docker is stands in the environment of a process.
    const ended = await (env === undefined ? paddock(args) : paddockProcess(args, env))
    expect(ended.code).toBe(exit)
    const lines = ended.err.trimEnd().split('\n')
    expect(lines.filter((line) => line.includes('Fix: '))).toHaveLength(1)
    expect(lines.at(-1)).toMatch(new RegExp(`^${code}: .+ Fix: \\S.+$`))
    expect(lines.at(-1)).toContain(says)
  })
})
