import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readObjectBody } from '../../src/proxy/dialects/translate/read.ts'
import { readMessagesTool } from '../../src/proxy/dialects/messages/tools.ts'
import { readEffort } from '../../src/proxy/dialects/translate/effort.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { script, startProxy, type TestEngine, type TestProxy } from './support.ts'

let engine: TestEngine
let paddock: TestProxy

beforeAll(async () => {
  engine = await useEngine()
  paddock = await startProxy(engine.url)
  await engine.control('/scripts', script('Say where you are.', [{ shell: 'pwd' }, { say: 'In the workspace.' }]))
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

const model = 'scripted-hermes'

/** Anthropic's names, as the SDK types them; the schema is what the engine must be told. */
const cases: readonly (readonly [type: string, name: string, member: string, values: readonly string[] | null])[] = [
  ['bash_20250124', 'bash', 'command', null],
  ['text_editor_20250124', 'str_replace_editor', 'command', ['view', 'create', 'str_replace', 'insert', 'undo_edit']],
  ['text_editor_20250728', 'str_replace_based_edit_tool', 'command', ['view', 'create', 'str_replace', 'insert']],
  ['memory_20250818', 'memory', 'command', ['view', 'create', 'str_replace', 'insert', 'delete', 'rename']],
]

describe('tools that Anthropic names and the client runs', () => {
  it('lets an unmodified client use its bash tool: the model is told the schema, the call comes back', async () => {
    const session = await paddock.open()
    const claude = new Anthropic({ apiKey: session.key, baseURL: session.url.replace(/\/v1$/, ''), maxRetries: 0 })
    const tools: Anthropic.Messages.ToolBash20250124[] = [{ type: 'bash_20250124', name: 'bash' }]
    const asked: Anthropic.Messages.MessageParam[] = [{ role: 'user', content: 'Say where you are.' }]
    const ask = { model, max_tokens: 200, tools, output_config: { effort: 'max' as const } }
    const first = await claude.messages.create({ ...ask, messages: asked })
    const use = first.content.find((block) => block.type === 'tool_use')
    expect(use).toMatchObject({ name: 'bash', input: { command: 'pwd' } })
    const second = await claude.messages.create({
      ...ask,
      messages: [
        ...asked,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: use?.id ?? '', content: '/workspace' }] },
      ],
    })
    expect(second.content).toEqual([expect.objectContaining({ type: 'text', text: 'In the workspace.' })])
    const { segments } = await session.log()
    expect(segments.filter((segment) => segment.parent === null)).toHaveLength(1)
  })

  it.each(cases)('tells the engine what %s takes', (type, name, member, values) => {
    const tool = readMessagesTool(readObjectBody(Buffer.from(JSON.stringify({ type, name }))), 0)
    const { properties } = JSON.parse(tool.parametersText ?? '') as {
      properties: Record<string, { enum?: readonly string[] }>
    }
    expect(tool.name).toBe(name)
    expect(properties[member]?.enum ?? null).toEqual(values)
  })

  it('offers zoom only where the client says that it can', () => {
    const actions = (enable_zoom: boolean) => {
      const body = {
        type: 'computer_20251124',
        name: 'computer',
        display_width_px: 10,
        display_height_px: 10,
        enable_zoom,
      }
      const { parametersText } = readMessagesTool(readObjectBody(Buffer.from(JSON.stringify(body))), 0)
      return (JSON.parse(parametersText ?? '') as { properties: { action: { enum: string[] } } }).properties.action.enum
    }
    expect(actions(true)).toContain('zoom')
    expect(actions(false)).not.toContain('zoom')
  })

  it('refuses tools that servers of Anthropic would run, and says what to do', () => {
    for (const type of ['web_search_20250305', 'code_execution_20250825', 'web_fetch_20250910']) {
      const read = () => readMessagesTool(readObjectBody(Buffer.from(JSON.stringify({ type, name: 'x' }))), 0)
      expect(read).toThrow(
        expect.objectContaining({ code: 'BODY_INVALID_SHAPE', message: expect.stringContaining(type) }),
      )
    }
  })
})

describe('how hard a model is asked to think', () => {
  it('draws the ends in to what every engine takes, and leaves unknown words out', () => {
    const read = ['none', 'minimal', 'low', 'medium', 'HIGH', 'xhigh', 'max', 'extreme', undefined].map(readEffort)
    expect(read).toEqual([null, 'low', 'low', 'medium', 'high', 'high', 'high', null, null])
  })
})
