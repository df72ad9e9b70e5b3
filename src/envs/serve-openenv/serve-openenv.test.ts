/** Our tasks behind OpenEnv's protocol: what goes wrong, without a box; and in boxes, worked on through our own client of it. `npm run real` has OpenEnv's. */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { makeTask, PaddockError, type Task } from '../../core/index.ts'
import { scored, unscored } from '../../reward/index.ts'
import { type Box, dockerProvider, type SandboxProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import type { Environment } from '../contract.ts'
import { defineEnvironment } from '../define.ts'
import { openEnvEnvironment } from '../openenv/index.ts'
import { sql } from '../sql/index.ts'
import { defineTool } from '../tool.ts'
import { serveOpenEnv, type ServeOpenEnvOptions } from './index.ts'

const signal = new AbortController().signal

/** What a socket says; which of it is there says the type. */
interface Frame {
  readonly type: string
  readonly data: {
    readonly code: string
    readonly message: string
    readonly reward: number | null
    readonly done: boolean
    readonly observation: {
      readonly task: string
      readonly instruction: string
      readonly tools: unknown
      readonly result: unknown
      readonly error: { readonly message: string } | null
    }
  }
}

interface Rpc {
  readonly result: { readonly session_id: string; readonly tools: unknown }
  readonly error: { readonly code: number; readonly message: string }
}

/** Boxes of nobody; each counts while it is there. */
function noBoxes() {
  const open = new Set<Box>()
  const make = (): Box => {
    const died = Promise.withResolvers<never>()
    const box = {
      died: died.promise,
      killBackground: async () => undefined,
      freeze: async () => undefined,
      [Symbol.asyncDispose]: async () => void open.delete(box),
    } as unknown as Box
    open.add(box)
    return box
  }
  const sandbox = { ensureImage: async () => 'none', createBox: async () => make() } as unknown as SandboxProvider
  return { sandbox, open, make }
}

const task = (name: string): Task =>
  makeTask({ name, environment: 'echo', instruction: `Say ${name}.`, split: 'train', data: {}, source: name })

/** It wants its task's name said. */
const echo = (): Environment =>
  defineEnvironment({
    name: 'echo',
    apiVersion: 1,
    verifierVersion: '1',
    task: z.object({}),
    load: async () => [],
    box: () => ({
      image: { kind: 'paddock-base' },
      profile: 'user',
      workdir: '/workspace',
      user: null,
      env: {},
      network: 'none',
      agentTimeoutMs: null,
      verifyTimeoutMs: null,
    }),
    tools: () => [
      defineTool({
        name: 'shout',
        description: 'Shouts.',
        input: z.object({ text: z.string() }),
        run: async (_, { text }) => {
          if (text === 'die') {
            return { status: 'infra', text: 'gone', fault: new PaddockError('BOX_DEAD', 'The box died') }
          }
          return { status: text === 'late' ? 'timeout' : 'ok', text: text.toUpperCase() }
        },
      }),
    ],
    collect: async ({ lastSaid }) => {
      const data = Buffer.from((await lastSaid?.()) ?? '')
      const entries = [{ type: 'file' as const, path: 'said', mode: 0o444, data }]
      return {
        items: [
          { path: '/said', content: { found: true, entries, refused: [], cutShort: false, totalBytes: data.length } },
        ],
      }
    },
    verify: async ({ task: { name }, artifacts }) => {
      const entry = artifacts.items[0]?.content.entries[0]
      const text = entry?.type === 'file' ? Buffer.from(entry.data).toString() : ''
      const facts = { verifier: { id: 'echo', version: '1', sha256: '0' }, trust: 'host' } as const
      if (text === 'lost') return unscored('infra_error', 'the verifier is lost', facts)
      if (text === 'odd') return unscored('unscorable', 'nobody can tell', facts)
      return scored(text === name ? 1 : 0, facts)
    },
    scripts: { oracle: async () => ({ name: 'oracle', weight: 1, script: { steps: [] } }), cheats: async () => [] },
  })

async function house(more: Partial<ServeOpenEnvOptions> = {}) {
  const { sandbox, open } = noBoxes()
  const server = await serveOpenEnv({ environment: echo(), tasks: ['a', 'b', 'c'].map(task), sandbox, ...more })
  const rpc = async (method: string, params: object = {}, headers: Record<string, string> = {}) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const response = await fetch(`${server.url}/mcp`, { method: 'POST', body, headers })
    return (await response.json()) as Rpc
  }
  return { server, open, rpc, url: server.url, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** A client that asks one thing after the other. */
async function client(url: string, query = '') {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws${query}`)
  const frames: Frame[] = []
  let wake = (): void => undefined
  socket.addEventListener('message', ({ data }) => {
    frames.push(JSON.parse(data as string) as Frame)
    wake()
  })
  await once(socket, 'open')
  const heard = async (): Promise<Frame> => {
    for (;;) {
      const frame = frames.shift()
      if (frame !== undefined) return frame
      await new Promise<void>((resolve) => (wake = resolve))
    }
  }
  const raw = (text: string) => {
    socket.send(text)
    return heard()
  }
  const ask = (type: string, data?: object) => raw(JSON.stringify({ type, ...(data === undefined ? {} : { data }) }))
  const call = (tool_name: string, args: object = {}) => ask('step', { type: 'call_tool', tool_name, arguments: args })
  return { socket, heard, raw, ask, call }
}

describe('an episode', () => {
  it('begins at a task, answers calls, and ends with the verdict’s number', async () => {
    await using at = await house()
    const { ask, call } = await client(at.url)
    expect(await ask('reset', { task: 'b' })).toEqual({
      type: 'observation',
      data: { observation: { task: 'b', instruction: 'Say b.', system_prompt: null }, reward: null, done: false },
    })
    const tools = (await ask('step', { type: 'list_tools' })).data.observation.tools
    expect(tools).toMatchObject([{ name: 'shout', input_schema: { type: 'object' } }, { name: 'submit' }])
    expect((await call('shout', { text: 'hi' })).data).toEqual({
      observation: {
        tool_name: 'shout',
        result: { content: [{ type: 'text', text: 'HI' }], data: 'HI', is_error: false },
        error: null,
      },
      reward: null,
      done: false,
    })
    expect((await ask('state')).data).toMatchObject({ step_count: 1, task: 'b' })
    expect((await call('submit', { text: 'b' })).data).toMatchObject({
      reward: 1,
      done: true,
      metadata: { verdict: { status: 'scored', reward: 1 } },
    })
    expect(at.open.size).toBe(0)
    expect((await call('shout', { text: 'hi' })).data).toMatchObject({
      done: true,
      reward: null,
      observation: { error: { error_type: 'execution_error', message: 'The episode is over.' } },
    })
    await ask('reset', { task: 'b' })
    expect((await call('submit')).data).toMatchObject({ reward: 0, done: true })
  })

  it('is of the task that the seed says, and of one after the other without', async () => {
    await using at = await house()
    const { ask } = await client(at.url)
    const started = async (data: object) => (await ask('reset', data)).data.observation.task
    expect([await started({ seed: 4 }), await started({ seed: 4 }), await started({}), await started({})]).toEqual([
      'b',
      'b',
      'a',
      'b',
    ])
    expect(at.open.size).toBe(1)
  })

  it('has no reward where nobody can tell, and is a fault where it is ours', async () => {
    await using at = await house()
    const { ask, call } = await client(at.url)
    await ask('reset', {})
    expect((await call('submit', { text: 'odd' })).data).toMatchObject({
      reward: null,
      done: true,
      metadata: { verdict: { status: 'unscorable', reason: 'nobody can tell' } },
    })
    await ask('reset', {})
    const lost = await call('submit', { text: 'lost' })
    expect(lost).toMatchObject({
      type: 'error',
      data: { code: 'EXECUTION_ERROR', message: expect.stringContaining('lost') },
    })
    await ask('reset', {})
    expect(await call('shout', { text: 'die' })).toMatchObject({ type: 'error', data: { code: 'EXECUTION_ERROR' } })
    expect((await call('submit', { text: 'a' })).data.observation.error?.message).toBe('The episode is over.')
    expect(at.open.size).toBe(0)
  })

  it('tells a client what it asked wrongly, and goes on', async () => {
    await using at = await house()
    const { ask, call, raw } = await client(at.url)
    expect((await call('shout', { text: 'hi' })).data).toMatchObject({
      code: 'VALIDATION_ERROR',
      message: /Reset first/,
    })
    expect((await raw('{')).data.code).toBe('INVALID_JSON')
    expect((await ask('dance')).data.code).toBe('VALIDATION_ERROR')
    expect((await ask('reset', { task: 'z' })).data).toMatchObject({
      code: 'VALIDATION_ERROR',
      message: expect.stringMatching(/no task "z"/),
    })
    expect((await ask('reset', { seed: -1 })).data.code).toBe('VALIDATION_ERROR')
    await ask('reset', {})
    expect((await ask('step', { type: 'code', code: '1' })).data.code).toBe('VALIDATION_ERROR')
    expect((await call('sing')).data.observation.error).toMatchObject({ error_type: 'tool_not_found' })
    expect((await call('shout', { volume: 3 })).data.observation.result).toMatchObject({ is_error: true })
    expect((await call('shout', { text: 'late' })).data.observation.error).toMatchObject({ error_type: 'timeout' })
    expect((await call('submit', { text: 'a' })).data.reward).toBe(1)
  })
})

describe('a session', () => {
  it('ends with its connection, and its box with it', async () => {
    await using at = await house({ maxSessions: 1 })
    const { socket, ask } = await client(at.url)
    await ask('reset', {})
    const other = await client(at.url)
    expect(await other.heard()).toMatchObject({ type: 'error', data: { code: 'CAPACITY_REACHED' } })
    socket.close()
    await expect.poll(() => at.open.size).toBe(0)
    const again = await client(at.url)
    expect((await again.ask('reset', {})).type).toBe('observation')
  })

  it('may be made over HTTP and shared with a WebSocket', async () => {
    await using at = await house()
    const { session_id } = (await at.rpc('openenv/session/create')).result
    const { ask, call } = await client(at.url, `?session_id=${session_id}`)
    await ask('reset', { task: 'c' })
    expect((await at.rpc('tools/list', { session_id })).result.tools).toMatchObject([
      { name: 'shout', inputSchema: {} },
      {},
    ])
    const called = await at.rpc('tools/call', { session_id, name: 'shout', arguments: { text: 'ho' } })
    expect(called.result).toMatchObject({ data: 'HO' })
    expect((await call('submit', { text: 'c' })).data.reward).toBe(1)
    expect((await at.rpc('openenv/session/close', { session_id })).result).toEqual({ session_id, closed: true })
    expect((await at.rpc('tools/list', { session_id })).error).toMatchObject({
      message: expect.stringMatching(/no session/),
    })
    expect((await at.rpc('dance')).error.code).toBe(-32601)
  })

  it('that nobody asks anything ends', async () => {
    await using at = await house({ maxSessions: 1, idleMs: 50 })
    const made = async () => (await at.rpc('openenv/session/create')).result
    expect(await made()).toMatchObject({ session_id: expect.any(String) })
    // One that was made took the place of one that had ended.
    await expect.poll(made).toMatchObject({ session_id: expect.any(String) })
  })

  it('answers any request target, also those that are no URL', async () => {
    await using at = await house()
    const { hostname, port } = new URL(at.url)
    for (const path of ['//', '///x', '*', 'http://[']) {
      const asked = request({ hostname, port, path, method: 'GET' }).end()
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      response.resume()
      expect([path, response.statusCode]).toEqual([path, 404])
      const upgrade = { connection: 'upgrade', upgrade: 'websocket' }
      const risen = request({ hostname, port, path, headers: upgrade }).end()
      const [refused] = (await once(risen, 'response')) as [IncomingMessage]
      refused.resume()
      expect([path, refused.statusCode]).toEqual([path, 403])
    }
    expect(await (await fetch(`${at.url}/health`)).json()).toEqual({ status: 'healthy' })
  })

  it('is nothing for pages of a browser', async () => {
    await using at = await house()
    const response = await fetch(`${at.url}/health`, { headers: { origin: 'http://evil.example' } })
    expect(response.status).toBe(403)
    expect(await (await fetch(`${at.url}/health`)).json()).toEqual({ status: 'healthy' })
    expect((await fetch(`${at.url}/metadata`)).status).toBe(200)
    expect((await fetch(`${at.url}/reset`, { method: 'POST' })).status).toBe(404)
  })
})

describe.runIf(await requireDocker())('the tasks of the sql environment, through our own client of OpenEnv', () => {
  const examples = join(import.meta.dirname, '../../../examples/tasks/sql')
  let sandbox: SandboxProvider
  let directory: string
  beforeAll(async () => {
    sandbox = dockerProvider()
    directory = tempDir()
  })
  afterAll(async () => {
    await sandbox.close()
  })

  it('are worked on in boxes and earn what their verdict says', async () => {
    const [first] = await sql.load(examples, { signal })
    if (first === undefined) throw new Error('no task')
    await using server = await serveOpenEnv({ environment: sql, tasks: [first], sandbox })
    const file = { instruction: 'As it says.', data: { reset: { task: first.name } } }
    await writeFile(join(directory, 'one.json'), JSON.stringify(file))
    const theirs = openEnvEnvironment({ name: 'theirs', version: '1', server: { url: server.url } })
    const [task] = (await theirs.load(directory, { signal })) as [Task]
    expect(task.instruction).toContain(JSON.stringify(sql.userPrompt(first)))
    const box = noBoxes().make()
    const context = { task, attempt: { id: 'one' }, box, signal, emit: () => undefined }
    await theirs.setup(context)
    const { script } = await sql.scripts.oracle(first)
    const steps = script.steps.flatMap((step) => ('tool' in step ? [step] : []))
    for (const step of [...steps, { tool: 'submit', args: {} }]) {
      const tool = theirs.tools(task).find(({ name }) => name === step.tool)
      expect(await tool?.run(context, step.args)).toMatchObject({ status: 'ok' })
    }
    const artifacts = await theirs.collect(context)
    const openBox = () => Promise.reject(new Error('no box is needed'))
    expect(await theirs.verify({ task, artifacts, openBox, signal, emit: () => undefined })).toMatchObject({
      reward: 1,
    })
  })
})
