/** Pictures on a real vLLM: what is recorded of them, before a judge that makes its pixel values itself. */
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PngScreen } from '../../src/envs/gui/desktop/png.ts'
import { type Ready, serve } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { exportRows, judge, type Row } from './rows.ts'
import { cache, type RealServer, startVllm } from './vllm.ts'

const model = 'vision-tiny'
/** `<|image_pad|>` of Qwen3's tokenizer, which stands once for each piece of a picture. */
const placeholder = 151_655
const maxTokens = 24
const [width, height] = [96, 64]

/** Pictures of one size and of other pixels each: their placeholders are the same ids. */
const pictures = await Promise.all([3, 7, 11].map(pictureOf))
const [first, second, third] = pictures as [Buffer, Buffer, Buffer]

async function pictureOf(mark: number): Promise<Buffer> {
  const pixels = Buffer.from(Array.from({ length: width * height * 4 }, (_, at) => (at * mark) % 251))
  return new PngScreen(width, height).of(pixels)
}

const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

const shown = (picture: Buffer) => ({
  type: 'image_url' as const,
  image_url: { url: `data:image/png;base64,${picture.toString('base64')}` },
})

const opening = {
  role: 'user' as const,
  content: [{ type: 'text' as const, text: 'What is this?' }, shown(first)],
}

/** Two turns of the chat dialect, a picture in each, the first streamed; and one of the messages dialect. */
async function look({ env }: Ready): Promise<void> {
  const chat = new OpenAI({ apiKey: env.OPENAI_API_KEY, baseURL: env.OPENAI_BASE_URL, maxRetries: 0 })
  const asked = { model, max_tokens: maxTokens, temperature: 1 }
  let said = ''
  for await (const { choices } of await chat.chat.completions.create({ ...asked, messages: [opening], stream: true })) {
    said += choices[0]?.delta.content ?? ''
  }
  await chat.chat.completions.create({
    ...asked,
    messages: [
      opening,
      { role: 'assistant', content: said },
      { role: 'user', content: [shown(second), { type: 'text', text: 'And this?' }] },
    ],
  })
  const claude = new Anthropic({
    apiKey: env.OPENAI_API_KEY,
    baseURL: env.OPENAI_BASE_URL.replace(/\/v1$/, ''),
    maxRetries: 0,
  })
  const source = { type: 'base64' as const, media_type: 'image/png' as const, data: third.toString('base64') }
  const content = [
    { type: 'image' as const, source },
    { type: 'text' as const, text: 'Tell me.' },
  ]
  await claude.messages.create({ ...asked, messages: [{ role: 'user', content }] })
}

interface Call {
  readonly strategy: string
  readonly outcome: { readonly kind: string }
  readonly findings: readonly string[]
}

describe.skipIf(cache === '')('vLLM 0.32.0 with a random Qwen2-VL', () => {
  let server: RealServer
  let directory: string
  const seen: Row[] = []
  beforeAll(async () => {
    directory = tempDir()
    server = await startVllm(model, ['--limit-mm-per-prompt', '{"image": 2, "video": 0}'])
  })
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]()
  })

  describe.each(['auto', 'splice'] as const)('strategy %s', (strategy) => {
    let calls: Call[]
    let rows: readonly Row[]
    beforeAll(async () => {
      const [data, out] = [join(directory, strategy), join(directory, `${strategy}-out`)]
      const config = join(directory, `${strategy}.config.ts`)
      await writeFile(config, `export default { session: { strategy: '${strategy}' } }\n`)
      const serving = await serve(data, ['--engine', server.url, '--config', config])
      await look(serving.ready)
      calls = []
      for (let call = 0; call < 3; call += 1) calls.push((await serving.nextCall()) as unknown as Call)
      expect((await serving.stop()).code).toBe(0)
      rows = (await exportRows(data, out)).map((row) => ({
        ...row,
        media: (row.media ?? []).map(({ path, ...facts }) => ({ path: join(out, path), ...facts })),
      }))
      seen.push(...rows)
    })

    it('records, and finds nothing wrong with what the engine says', () => {
      expect(calls).toMatchObject(
        Array.from({ length: 3 }, () => ({ strategy: 'record', outcome: { kind: 'complete' }, findings: [] })),
      )
    })

    it('the ids of a prompt hold the placeholders that the engine itself makes of the picture', async () => {
      const reply = await fetch(`${server.url}/v1/chat/completions/render`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [opening] }),
      })
      const rendered = (await reply.json()) as {
        readonly token_ids: readonly number[]
        readonly features: { readonly mm_placeholders: { readonly image: readonly { readonly length: number }[] } }
      }
      const each = rendered.features.mm_placeholders.image[0]?.length ?? 0
      expect(each).toBeGreaterThan(1)
      for (const { token_ids: ids, loss_mask: mask, media } of rows) {
        const held = ids.filter((id, at) => id === placeholder && mask[at] === 0)
        expect(held).toHaveLength(each * (media?.length ?? 0))
      }
      const opened = rows.find(({ media }) => media?.[0]?.sha256 === digestOf(first))
      expect(opened?.token_ids.slice(0, rendered.token_ids.length)).toEqual(rendered.token_ids)
    })

    it('each picture is a file of the export, byte by byte, named in order', async () => {
      const media = rows.map((row) => row.media ?? [])
      for (const medium of media.flat()) expect(digestOf(await readFile(medium.path))).toBe(medium.sha256)
      const named = media.map((list) => list.map(({ sha256 }) => sha256).join())
      const [one, two, three] = pictures.map(digestOf)
      // The second turn is a row of its own where the engine wrote the answer's text in other ids.
      const apart = rows.length === 3 ? [one] : []
      expect(new Set(named)).toEqual(new Set([...apart, `${one},${two}`, three]))
    })
  })

  it('agrees with an independent forward pass of these pictures, and not with others of the same size', async () => {
    const sampled = seen.flatMap(({ loss_mask: mask }) => mask).filter((bit) => bit === 1).length
    expect(sampled).toBe(2 * 3 * maxTokens)
    const media = seen.flatMap((row) => row.media ?? [])
    const exchanged = seen.map((row) => ({
      ...row,
      media: row.media?.map((medium) => media.find(({ sha256 }) => sha256 !== medium.sha256) ?? medium) ?? [],
    }))
    const judged = await judge(directory, model, { true: seen, exchanged })
    console.log(judged)
    expect(judged['true']?.p99).toBeLessThanOrEqual(1e-3)
    expect(judged['exchanged']?.p99).toBeGreaterThan(1e-3)
  })
})
