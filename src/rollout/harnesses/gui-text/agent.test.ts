import { createServer } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { EventBody } from '../../../core/index.ts'
import { defineTool, type ToolOutcome } from '../../../envs/index.ts'
import type { HostContext } from '../contract.ts'
import { guiTextAgent } from './agent.ts'

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** A model that gives these answers one after the other, and what it was asked. */
async function modelOf(answers: readonly string[]) {
  const asked: { readonly messages: readonly { readonly role: string; readonly content: unknown }[] }[] = []
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const content = answers[asked.length] ?? 'nothing more'
      asked.push(JSON.parse(Buffer.concat(parts).toString()))
      response.setHeader('content-type', 'application/json')
      response.setHeader('x-request-id', `call-${asked.length}`)
      response.end(
        JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] }),
      )
    })
  })
  const listening = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', listening.resolve)
  await listening.promise
  closing.push(() => server.close())
  const address = server.address()
  return { asked, baseUrl: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/v1` }
}

/** Runs the harness with a tool that answers so; the screen is a picture of one byte. */
async function ran(
  answers: readonly string[],
  work: (text: string) => ToolOutcome,
  maxTurns = 5,
  spoken: string | null = 'Say it.',
) {
  const { asked, baseUrl } = await modelOf(answers)
  const done: string[] = []
  const tool = defineTool({
    name: 'computer',
    description: 'x',
    ...(spoken === null ? {} : { spoken }),
    input: z.looseObject({ text: z.string().optional() }),
    run: async (_, { text, ...rest }) => {
      done.push(text ?? JSON.stringify(rest))
      return text === undefined ? screen : work(text)
    },
  })
  const events: EventBody[] = []
  const context = {
    task: {},
    attempt: {},
    box: {},
    prompt: 'Press Save.',
    systemPrompt: null,
    baseUrl,
    apiKey: 'x',
    model: 'm',
    tools: [tool],
    signal: new AbortController().signal,
    goesOn: null,
    emit: (event: EventBody) => void events.push(event),
    keep: async () => 'digest',
    onOutput: () => undefined,
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of task and box only that they are passed on is looked at
  const report = await guiTextAgent({ maxTurns }).run(context as unknown as HostContext)
  return { report, asked, done, events }
}
const screen: ToolOutcome = {
  status: 'ok',
  text: 'Did it.',
  pictures: [{ mediaType: 'image/png', data: Buffer.from('p'), width: 1, height: 1 }],
}
const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,cA==' } }

describe('the harness for models that write their actions', () => {
  test('shows the screen, has the text done, shows it again, and ends when the attempt has ended', async () => {
    const { report, asked, done, events } = await ran(['Action: a', 'so what', 'Action: end'], (text) => {
      if (text === 'so what') return { status: 'error', text: 'There is no action.' }
      return text === 'Action: end' ? { status: 'ok', text: 'Over.', facts: { ended: 'done' } } : screen
    })
    expect(report).toEqual({ end: 'completed', detail: '3 turns, done', answer: 'Action: end' })
    expect(done).toEqual(['{"action":"screenshot"}', 'Action: a', 'so what', 'Action: end'])
    const first = {
      role: 'user',
      content: [{ type: 'text', text: 'Say it.\n\n## User Instruction\nPress Save.' }, image],
    }
    expect(asked[0]).toMatchObject({ messages: [first] })
    // Each prompt is the one before, what was answered, and what was seen then.
    expect(asked[2]?.messages).toMatchObject([
      first,
      { role: 'assistant', content: 'Action: a' },
      { role: 'user', content: [image] },
      { role: 'assistant', content: 'so what' },
      { role: 'user', content: [{ type: 'text', text: 'There is no action.' }] },
    ])
    expect(events).toMatchObject([
      { kind: 'tool_result', callId: null, status: 'ok', images: [{ sha256: 'digest' }] },
      { callId: 'call-1', tool: 'computer', status: 'ok' },
      { callId: 'call-2', status: 'error' },
      { callId: 'call-3', facts: { ended: 'done' } },
    ])
  })

  test('stops at its turns, and where the task has no more actions', async () => {
    const { report, asked } = await ran([], () => screen, 2)
    expect(report).toMatchObject({ end: 'horizon' })
    expect(asked).toHaveLength(2)
    const used = await ran([], () => ({
      status: 'error',
      text: 'All 3 actions are used up.',
      facts: { ended: 'limit' },
    }))
    expect(used.report).toMatchObject({ end: 'horizon', detail: 'All 3 actions are used up.' })
  })

  test('says which schemas it needs, and asks nothing without one', async () => {
    const { report, asked } = await ran(['x'], () => screen, 2, null)
    expect(report).toMatchObject({ end: 'harness_crash', detail: expect.stringContaining('takes text') })
    expect(asked).toEqual([])
  })
})
