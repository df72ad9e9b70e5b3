import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useEngine } from '../fixtures/use-engine.ts'
import { script, startProxy, type TestEngine, type TestProxy, type TestSession } from './support.ts'

let engine: TestEngine
let paddock: TestProxy

beforeAll(async () => {
  engine = await useEngine()
  paddock = await startProxy(engine.url)
  await engine.control('/scripts', script('What is this?', [{ say: 'A red square.' }]))
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

const model = 'scripted-hermes'

/** As much of a PNG as the scripted engine reads: signature and size; `mark` makes it another image of equal size. */
function png(mark: number): string {
  const bytes = Buffer.from('89504e470d0a1a0a0000000d494844520000003800000038', 'hex')
  return Buffer.concat([bytes, Buffer.of(mark)]).toString('base64')
}
const [red, blue] = [png(1), png(2)]
const question = 'What is this?'

const askers: Readonly<Record<string, (session: TestSession, images: readonly string[]) => Promise<string>>> = {
  chat: async ({ client }, images) => {
    const content = [
      { type: 'text' as const, text: question },
      ...images.map((data) => ({
        type: 'image_url' as const,
        image_url: { url: `data:image/png;base64,${data}` },
      })),
    ]
    const answer = await client.chat.completions.create({ model, messages: [{ role: 'user', content }] })
    return answer.choices[0]?.message.content ?? ''
  },
  responses: async ({ client }, images) => {
    const content = [
      { type: 'input_text' as const, text: question },
      ...images.map((data) => ({
        type: 'input_image' as const,
        detail: 'auto' as const,
        image_url: `data:image/png;base64,${data}`,
      })),
    ]
    return (await client.responses.create({ model, input: [{ role: 'user', content }] })).output_text
  },
  messages: async ({ key, url }, images) => {
    const claude = new Anthropic({ apiKey: key, baseURL: url.replace(/\/v1$/, ''), maxRetries: 0 })
    const content = [
      { type: 'text' as const, text: question },
      ...images.map((data) => ({
        type: 'image' as const,
        source: { type: 'base64' as const, media_type: 'image/png' as const, data },
      })),
    ]
    const answer = await claude.messages.create({ model, max_tokens: 50, messages: [{ role: 'user', content }] })
    return answer.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  },
  gemini: async ({ key, url }, images) => {
    const httpOptions = { baseUrl: url.replace(/\/v1$/, ''), retryOptions: { attempts: 1 } }
    const { models } = new GoogleGenAI({ apiKey: key, httpOptions })
    const parts = [{ text: question }, ...images.map((data) => ({ inlineData: { mimeType: 'image/png', data } }))]
    return (await models.generateContent({ model, contents: [{ role: 'user', parts }] })).text ?? ''
  },
}

describe('images', () => {
  it.each(Object.keys(askers))(
    'reach the engine byte for byte in %s, one prompt whatever the dialect',
    async (name) => {
      const session = await paddock.open()
      const reference = await paddock.open()
      expect(await askers[name]?.(session, [red, blue])).toBe('A red square.')
      await askers['chat']?.(reference, [red, blue])
      const [truth, expected] = await Promise.all(
        [session, reference].map(async (one) => engine.generation((await one.log()).calls[0]?.intent.id)),
      )
      expect(truth?.images).toEqual(expected?.images)
      expect(truth?.images).toHaveLength(2)
      expect(truth?.promptTokenIds).toEqual(expected?.promptTokenIds)
      const { segments, calls } = await session.log()
      expect(calls[0]?.intent.strategy).toBe('record')
      expect([...(segments[0]?.tokens ?? [])]).toEqual(truth?.promptTokenIds)
    },
  )

  it('of equal size have equal ids and are still another context: a swapped image forks, with its cause', async () => {
    const session = await paddock.open()
    const first = (data: string) => ({
      role: 'user' as const,
      content: [
        { type: 'text' as const, text: question },
        { type: 'image_url' as const, image_url: { url: `data:image/png;base64,${data}` } },
      ],
    })
    const ask = (data: string, more: readonly { role: 'user' | 'assistant'; content: string }[]) =>
      session.client.chat.completions.create({ model, messages: [first(data), ...more] })
    await ask(red, [])
    const said = [
      { role: 'assistant' as const, content: 'A red square.' },
      { role: 'user' as const, content: 'Sure?' },
    ]
    await ask(red, said)
    await ask(blue, said)
    const { calls, segments } = await session.log()
    const ids = await Promise.all(calls.map(async (call) => (await engine.generation(call.intent.id)).promptTokenIds))
    expect(ids[2]).toEqual(ids[1])
    expect(calls.map((call) => call.commit?.forks.map((fork) => fork.cause))).toEqual([[], [], ['multimodal']])
    // The second question extends the first; the third begins a path of its own.
    expect(segments.filter((segment) => segment.parent === null)).toHaveLength(2)
  })
})
