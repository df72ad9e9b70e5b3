/** OpenAI's computer tools: the client runs them, the engine is told them as functions. */
import type OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chatRequestOf } from '../../src/proxy/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { script, startProxy, type TestEngine, type TestProxy, type TestSession } from './support.ts'

type Responses = typeof OpenAI.Responses.prototype
type Input = OpenAI.Responses.ResponseInputItem
type Body = Parameters<Responses['create']>[0]

const model = 'scripted-hermes'
/** As much of a PNG as the scripted engine reads: signature and size. */
const screen = Buffer.from('89504e470d0a1a0a0000000d494844520000003800000038', 'hex').toString('base64')
const image_url = `data:image/png;base64,${screen}`

const deeds = [
  { type: 'screenshot' },
  { type: 'click', x: 10, y: 20, button: 'left' },
  {
    type: 'drag',
    path: [
      { x: 1, y: 2 },
      { x: 3, y: 4 },
    ],
  },
  { type: 'scroll', x: 5, y: 6, scroll_x: 0, scroll_y: -120 },
  { type: 'keypress', keys: ['CTRL', 'A'] },
  { type: 'type', text: 'grüße "quoted" \\n' },
]

const kinds = {
  computer_use_preview: {
    tool: { type: 'computer_use_preview', display_width: 1024, display_height: 768, environment: 'browser' },
    steps: deeds,
    did: (action: object) => ({ action }),
  },
  computer: {
    tool: { type: 'computer' },
    steps: [{ actions: deeds.slice(0, 2) }, { actions: deeds.slice(2) }],
    did: (args: object) => args,
  },
} as const

let engine: TestEngine
let paddock: TestProxy
beforeAll(async () => {
  engine = await useEngine()
  paddock = await startProxy(engine.url)
  for (const [name, { steps }] of Object.entries(kinds)) {
    const calls = steps.map((args) => ({ tool: name, args }))
    await engine.control('/scripts', script(`Use ${name}.`, [{ think: 'I look.' }, ...calls, { say: 'It is done.' }]))
  }
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

function ask({ client }: TestSession, stream: boolean, body: Omit<Body, 'stream'>): Promise<OpenAI.Responses.Response> {
  return stream ? client.responses.stream(body).finalResponse() : client.responses.create({ ...body, stream: false })
}

const output = (call_id: string): Input => ({
  type: 'computer_call_output',
  call_id,
  output: { type: 'computer_screenshot', image_url },
  acknowledged_safety_checks: [],
})

describe.each(['computer_use_preview', 'computer'] as const)('%s', (name) => {
  const { tool, steps, did } = kinds[name]
  const tools = [tool as OpenAI.Responses.Tool]

  describe.each([
    ['items sent again', false, false],
    ['items sent again, streamed', true, false],
    ['items by their ids, streamed', true, true],
    ['the response before', false, null],
  ] as const)('%s', (_way, stream, byId) => {
    it('calls come as computer_call items, screenshots go back, and each prompt extends the one before', async () => {
      const session = await paddock.open({ policy: { strategy: 'auto' } })
      const input: Input[] = [{ role: 'user', content: `Use ${name}.` }]
      const seen: object[] = []
      let fresh = input
      let previous: string | null = null
      for (;;) {
        const given = byId === null ? { input: fresh, previous_response_id: previous } : { input: [...input] }
        const response = await ask(session, stream, { model, tools, ...given })
        previous = response.id
        const calls = response.output.filter((item) => item.type === 'computer_call')
        input.push(
          ...(byId === true
            ? response.output.map(({ id }): Input => ({ type: 'item_reference', id: id ?? '' }))
            : (response.output as Input[])),
        )
        if (calls.length === 0) {
          expect(response.output_text).toBe('It is done.')
          break
        }
        seen.push(...calls)
        fresh = calls.map((call) => output(call.call_id))
        input.push(...fresh)
      }
      const expected = { type: 'computer_call', status: 'completed', pending_safety_checks: [] }
      expect(seen).toEqual(
        steps.map((args) => ({
          ...expected,
          ...did(args),
          id: expect.stringMatching(/^cu_/),
          call_id: expect.any(String),
        })),
      )
      const log = await session.log()
      expect(log.calls).toHaveLength(steps.length + 1)
      expect(log.calls.flatMap(({ commit }) => commit?.forks ?? [])).toEqual([])
      expect(log.segments.filter(({ parent }) => parent === null)).toHaveLength(1)
      const last = log.calls.at(-1)
      if (last === undefined) throw new Error('no call')
      const told = JSON.parse(Buffer.from(chatRequestOf(log, last) ?? []).toString())
      expect(told.tools).toMatchObject([{ function: { name, parameters: { type: 'object' } } }])
      expect(JSON.stringify(told.messages)).toContain(image_url)
      if (name === 'computer_use_preview') expect(told.tools[0].function.description).toContain('1024 by 768 pixels')
    })
  })

  it('can be demanded', async () => {
    const session = await paddock.open()
    const tool_choice = { type: name } as unknown as OpenAI.Responses.ToolChoiceTypes
    const response = await ask(session, false, {
      model,
      tools,
      tool_choice,
      input: 'Whatever.',
      max_output_tokens: 200,
    })
    expect(response.output.map(({ type }) => type)).toContain('computer_call')
    await expect(ask(session, false, { model, tool_choice, input: 'Whatever.' })).rejects.toThrow('is not offered')
  })
})

it('a screenshot that lies elsewhere is refused with the way out', async () => {
  const session = await paddock.open()
  const call: Input = {
    type: 'computer_call',
    id: 'cu_1',
    call_id: 'c1',
    status: 'completed',
    pending_safety_checks: [],
    action: { type: 'screenshot' },
  }
  const stored: Input = {
    type: 'computer_call_output',
    call_id: 'c1',
    output: { type: 'computer_screenshot', file_id: 'file_1' },
  }
  const input: Input[] = [{ role: 'user', content: 'Go on.' }, call, stored]
  await expect(ask(session, false, { model, input })).rejects.toThrow(/input\.2\.output.*image_url/)
})
