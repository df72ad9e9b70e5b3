/** Shells and patches of OpenAI's Responses API: the client runs them, the engine is told them as functions. */
import type OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chatRequestOf } from '../../src/proxy/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { script, startProxy, type TestEngine, type TestProxy, type TestSession } from './support.ts'

type Input = OpenAI.Responses.ResponseInputItem
type Body = Parameters<typeof OpenAI.Responses.prototype.create>[0]

const model = 'scripted-hermes'

const kinds = {
  shell: {
    tool: { type: 'shell', environment: { type: 'local' } },
    args: { commands: ['ls -la', 'echo "grüße" \\'], timeout_ms: 5000 },
    call: {
      type: 'shell_call',
      id: expect.stringMatching(/^sh_/),
      action: { commands: ['ls -la', 'echo "grüße" \\'], timeout_ms: 5000, max_output_length: null },
    },
    output: (call_id: string): Input => ({
      type: 'shell_call_output',
      call_id,
      output: [
        { stdout: 'a.txt', stderr: '', outcome: { type: 'exit', exit_code: 0 } },
        { stdout: '', stderr: 'no such file', outcome: { type: 'exit', exit_code: 2 } },
        { stdout: 'begun', stderr: '', outcome: { type: 'timeout' } },
      ],
    }),
    told: 'a.txt\n\nno such file\nExit code: 2\n\nbegun\nIt ran out of time.',
  },
  local_shell: {
    tool: { type: 'local_shell' },
    args: { command: ['ls', '-la'], working_directory: '/tmp' },
    call: {
      type: 'local_shell_call',
      id: expect.stringMatching(/^lsh_/),
      action: { type: 'exec', command: ['ls', '-la'], working_directory: '/tmp', env: {} },
    },
    output: (id: string): Input => ({ type: 'local_shell_call_output', id, output: 'a.txt' }),
    told: 'a.txt',
  },
  apply_patch: {
    tool: { type: 'apply_patch' },
    args: { type: 'update_file', path: 'a.txt', diff: '@@\n-a\n+b\n' },
    call: {
      type: 'apply_patch_call',
      id: expect.stringMatching(/^apc_/),
      operation: { type: 'update_file', path: 'a.txt', diff: '@@\n-a\n+b\n' },
    },
    output: (call_id: string): Input => ({
      type: 'apply_patch_call_output',
      call_id,
      status: 'failed',
      output: 'no a',
    }),
    told: 'Error: no a',
  },
} as const

let engine: TestEngine
let paddock: TestProxy
beforeAll(async () => {
  engine = await useEngine()
  paddock = await startProxy(engine.url)
  for (const [name, { args }] of Object.entries(kinds)) {
    const steps = [{ think: 'I look.' }, { tool: name, args }, { tool: name, args }, { say: 'It is done.' }]
    await engine.control('/scripts', script(`Use ${name}.`, steps))
  }
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

function ask({ client }: TestSession, stream: boolean, body: Omit<Body, 'stream'>): Promise<OpenAI.Responses.Response> {
  return stream ? client.responses.stream(body).finalResponse() : client.responses.create({ ...body, stream: false })
}

describe.each(['shell', 'local_shell', 'apply_patch'] as const)('%s', (name) => {
  const { tool, call, output, told } = kinds[name]
  const tools = [tool as OpenAI.Responses.Tool]

  it.each([
    ['items sent again', false, false],
    ['items sent again, streamed', true, false],
    ['items by their ids, streamed', true, true],
    ['items by their ids alone', false, null],
  ] as const)('%s: calls come as items, outputs go back, and each prompt extends', async (_way, stream, byId) => {
    const session = await paddock.open({ policy: { strategy: 'auto' } })
    const input: Input[] = [{ role: 'user', content: `Use ${name}.` }]
    const seen: object[] = []
    for (;;) {
      const response = await ask(session, stream, { model, tools, input: [...input] })
      const calls = response.output.filter((item) => item.type === call.type)
      for (const item of response.output) {
        if (byId === false) input.push(item as Input)
        // The SDK's type lets the word be left out.
        else input.push({ ...(byId ? { type: 'item_reference' as const } : {}), id: item.id ?? '' })
      }
      if (calls.length === 0) {
        expect(response.output_text).toBe('It is done.')
        break
      }
      seen.push(...calls)
      for (const item of calls) input.push(output('call_id' in item ? String(item.call_id) : ''))
    }
    expect(seen).toMatchObject([call, call])
    const log = await session.log()
    expect(log.calls.flatMap(({ commit }) => commit?.forks ?? [])).toEqual([])
    expect(log.segments.filter(({ parent }) => parent === null)).toHaveLength(1)
    const last = log.calls.at(-1)
    if (last === undefined) throw new Error('no call')
    const asked = JSON.parse(Buffer.from(chatRequestOf(log, last) ?? []).toString())
    expect(asked.tools).toMatchObject([{ function: { name, parameters: { type: 'object' } } }])
    expect(asked.messages).toContainEqual(expect.objectContaining({ role: 'tool', content: told }))
  })

  it('can be demanded where it is offered', async () => {
    const session = await paddock.open()
    const tool_choice = { type: name } as unknown as OpenAI.Responses.ToolChoiceTypes
    const response = await ask(session, false, {
      model,
      tools,
      tool_choice,
      input: 'Whatever.',
      max_output_tokens: 200,
    })
    expect(response.output.map(({ type }) => type)).toContain(call.type)
    await expect(ask(session, false, { model, tool_choice, input: 'Whatever.' })).rejects.toThrow('is not offered')
  })
})

it("a shell in a container of OpenAI's is left out, as their servers' tools are", async () => {
  const session = await paddock.open()
  const tools: OpenAI.Responses.Tool[] = [{ type: 'shell', environment: { type: 'container_auto' } }]
  await ask(session, false, { model, tools, input: 'Whatever.' })
  expect((await session.log()).calls[0]?.intent.lineage.toolCount).toBe(0)
})

it('of tools that are allowed one is demanded, all are offered, and some are refused', async () => {
  const session = await paddock.open()
  const tools = ['a', 'b', 'c'].map((name): OpenAI.Responses.Tool => ({
    type: 'function',
    name,
    parameters: { type: 'object' },
    strict: false,
  }))
  const asking = (mode: 'auto' | 'required', ...names: string[]) => {
    const allowed = names.map((name) => ({ type: 'function', name }))
    const tool_choice = { type: 'allowed_tools' as const, mode, tools: allowed }
    return ask(session, false, { model, tools, tool_choice, input: 'Whatever.', max_output_tokens: 200 })
  }
  await asking('required', 'b')
  await asking('auto', 'a', 'b', 'c')
  const [one, all] = (await session.log()).calls
  const choiceOf = async (call: typeof one) => {
    if (call === undefined) throw new Error('no call')
    return JSON.parse(Buffer.from(chatRequestOf(await session.log(), call) ?? []).toString()).tool_choice
  }
  expect(await choiceOf(one)).toEqual({ type: 'function', function: { name: 'b' } })
  expect(await choiceOf(all)).toBe('auto')
  await expect(asking('auto', 'a', 'b')).rejects.toThrow(/tool_choice\.tools.*some of the tools/)
})
