/** What a trainer reads of a conversation is the same, whatever dialect the harness spoke, and its images are there. */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chatRequestOf, createProxy, vllmEngine } from '../../src/proxy/index.ts'
import { openRecording } from '../../src/rollout/index.ts'
import { runExport, type Store } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { useStore } from '../fixtures/use-store.ts'
import { script, type TestEngine } from '../proxy/support.ts'

let engine: TestEngine
let directory: string
let store: Store
let proxy: ReturnType<typeof createProxy>
let origin: string

beforeAll(async () => {
  engine = await useEngine()
  directory = tempDir()
  store = await useStore()
  proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url: engine.url }) })
  origin = (await proxy.listen({})).origin
  const steps = [{ think: 'It is a picture.' }, { shell: 'file a.png' }, { say: 'A red square.' }]
  await engine.control('/scripts', script('What is this?', steps))
})
afterAll(async () => {
  await proxy.close()
})

const model = 'scripted-hermes'
const system = 'Be brief.'
const question = 'What is this?'
const output = 'PNG image data'
const image = Buffer.from('89504e470d0a1a0a0000000d494844520000003800000038', 'hex')
const data = image.toString('base64')
const parameters = { type: 'object' as const, properties: { command: { type: 'string' } }, required: ['command'] }
const description = 'Run a command.'

interface Session {
  readonly key: string
  readonly url: string
}

/** Each asks, runs the tool, and asks again: what an agent does, in the way of its dialect. */
const agents: Readonly<Record<string, (session: Session) => Promise<void>>> = {
  async chat({ key, url }) {
    const { completions } = new OpenAI({ apiKey: key, baseURL: url, maxRetries: 0 }).chat
    const tools = [{ type: 'function' as const, function: { name: 'shell', description, parameters } }]
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: 'system', content: system },
      {
        role: 'user',
        content: [
          { type: 'text', text: question },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
        ],
      },
    ]
    const first = (await completions.create({ model, messages, tools })).choices[0]?.message
    if (first === undefined) throw new Error('no answer')
    const id = first.tool_calls?.[0]?.id ?? ''
    await completions.create({
      model,
      messages: [...messages, first, { role: 'tool', tool_call_id: id, content: output }],
      tools,
    })
  },
  async 'responses, by previous_response_id'({ key, url }) {
    const { responses } = new OpenAI({ apiKey: key, baseURL: url, maxRetries: 0 })
    const tools = [{ type: 'function' as const, name: 'shell', description, strict: false, parameters }]
    const content = [
      { type: 'input_text' as const, text: question },
      { type: 'input_image' as const, detail: 'auto' as const, image_url: `data:image/png;base64,${data}` },
    ]
    const ask = { model, instructions: system, tools }
    const first = await responses.create({ ...ask, input: [{ role: 'user', content }] })
    const call = first.output.find((item) => item.type === 'function_call')
    await responses.create({
      ...ask,
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id: call?.call_id ?? '', output }],
    })
  },
  async 'responses, with encrypted reasoning'({ key, url }) {
    const { responses } = new OpenAI({ apiKey: key, baseURL: url, maxRetries: 0 })
    const tools = [{ type: 'function' as const, name: 'shell', description, strict: false, parameters }]
    const content = [
      { type: 'input_text' as const, text: question },
      { type: 'input_image' as const, detail: 'auto' as const, image_url: `data:image/png;base64,${data}` },
    ]
    const ask = { model, instructions: system, tools, store: false, include: ['reasoning.encrypted_content' as const] }
    const first = await responses.create({ ...ask, input: [{ role: 'user', content }] })
    const call = first.output.find((item) => item.type === 'function_call')
    // Codex gives reasoning back by its opaque part alone.
    const given = first.output.flatMap((item): OpenAI.Responses.ResponseInputItem[] => {
      if (item.type === 'reasoning') return [{ ...item, content: [] }]
      return item.type === 'function_call' ? [item] : []
    })
    await responses.create({
      ...ask,
      input: [
        { role: 'user', content },
        ...given,
        { type: 'function_call_output', call_id: call?.call_id ?? '', output },
      ],
    })
  },
  async messages({ key, url }) {
    const { messages } = new Anthropic({ apiKey: key, baseURL: url.replace(/\/v1$/, ''), maxRetries: 0 })
    const content = [
      { type: 'text' as const, text: question },
      { type: 'image' as const, source: { type: 'base64' as const, media_type: 'image/png' as const, data } },
    ]
    const tools = [{ name: 'shell', description, input_schema: parameters }]
    const ask = { model, system, max_tokens: 300, tools, thinking: { type: 'adaptive' as const } }
    const first = await messages.create({ ...ask, messages: [{ role: 'user', content }] })
    const use = first.content.find((block) => block.type === 'tool_use')
    const result = { type: 'tool_result' as const, tool_use_id: use?.id ?? '', content: output }
    await messages.create({
      ...ask,
      messages: [
        { role: 'user', content },
        { role: 'assistant', content: first.content },
        { role: 'user', content: [result] },
      ],
    })
  },
  async gemini({ key, url }) {
    const httpOptions = { baseUrl: url.replace(/\/v1$/, ''), retryOptions: { attempts: 1 } }
    const { models } = new GoogleGenAI({ apiKey: key, httpOptions })
    const user = { role: 'user', parts: [{ text: question }, { inlineData: { mimeType: 'image/png', data } }] }
    const config = {
      systemInstruction: system,
      tools: [{ functionDeclarations: [{ name: 'shell', description, parametersJsonSchema: parameters }] }],
      thinkingConfig: { includeThoughts: true },
    }
    const first = await models.generateContent({ model, contents: [user], config })
    const answer = first.candidates?.[0]?.content ?? {}
    const call = answer.parts?.find((part) => part.functionCall !== undefined)?.functionCall
    const result = { functionResponse: { id: call?.id ?? '', name: 'shell', response: { output } } }
    await models.generateContent({
      model,
      contents: [user, answer, { role: 'user', parts: [result] }],
      config,
    })
  },
}

type Message = Readonly<Record<string, unknown>>

async function recorded(
  name: string,
  format: string,
): Promise<{ out: string; lines: Readonly<Record<string, unknown>>[] }> {
  const recording = await openRecording({ store, proxy, name, session: {} })
  await agents[name]?.({ key: recording.key, url: recording.baseUrl(origin) })
  await recording.end()
  const out = join(directory, `${format}-${recording.rolloutId}`)
  const query = { rolloutIds: [recording.rolloutId], includeNullVerdicts: true, includeUnfinished: true }
  await runExport({ reader: store, readRequest: chatRequestOf, exporter: format, out, query, paddockVersion: '0.0.0' })
  const files = { openai: 'messages.jsonl', jsonl: 'rows.jsonl' }
  const text = await readFile(join(out, files[format as 'openai' | 'jsonl']), 'utf8')
  return {
    out,
    lines: text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>),
  }
}

/** As two messages of equal meaning are equal: without ids, which each dialect makes anew. */
function plain(message: Message): object {
  const { role, content, reasoning, tool_calls: calls } = message
  const made = Array.isArray(calls) ? calls.map((call: { function: unknown }) => call.function) : []
  return { role, content: content === '' ? null : (content ?? null), reasoning: reasoning ?? null, calls: made }
}

describe('an export of a conversation', () => {
  it.each(Object.keys(agents))('is one row of chat messages, thinking and image included (%s)', async (name) => {
    const { out, lines } = await recorded(name, 'openai')
    expect(lines).toHaveLength(1)
    const { messages, tools } = lines[0] as { messages: Message[]; tools: unknown[] }
    const sha256 = createHash('sha256').update(image).digest('hex')
    const url = `media/${sha256}.png`
    const args = { name: 'shell', arguments: expect.stringMatching(/^\{"command": ?"file a.png"\}$/) }
    const [asked, user, called, result, answered] = messages.map(plain)
    expect([asked, result]).toMatchObject([
      { role: 'system', content: system },
      { role: 'tool', content: expect.stringContaining(output) },
    ])
    expect(user).toMatchObject({
      content: [
        { type: 'text', text: question },
        { type: 'image_url', image_url: { url } },
      ],
    })
    expect([called, answered]).toEqual([
      { role: 'assistant', content: null, reasoning: 'It is a picture.', calls: [args] },
      { role: 'assistant', content: 'A red square.', reasoning: null, calls: [] },
    ])
    expect(tools).toHaveLength(1)
    expect(
      createHash('sha256')
        .update(await readFile(join(out, url)))
        .digest('hex'),
    ).toBe(sha256)
  })

  it('names the images of a row in the order of their placeholders', async () => {
    const { out, lines } = await recorded('messages', 'jsonl')
    const [row] = lines as { media: { path: string; sha256: string; size_bytes: number }[]; token_ids: number[] }[]
    expect(lines).toHaveLength(1)
    // The vocabulary of the scripted engine: one `<|vision_start|>` opens each image.
    const places = row?.token_ids.filter((id) => id === 8265)
    expect(row?.media).toHaveLength(places?.length ?? 0)
    for (const { path, sha256, size_bytes } of row?.media ?? []) {
      const bytes = await readFile(join(out, path))
      expect([createHash('sha256').update(bytes).digest('hex'), bytes.length]).toEqual([sha256, size_bytes])
    }
    const manifest = JSON.parse(await readFile(join(out, 'manifest.json'), 'utf8')) as Record<string, unknown>
    expect(manifest['media']).toEqual({ files: 1, size_bytes: image.length })
  })
})
