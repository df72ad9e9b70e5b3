import { once } from 'node:events'
import { createServer } from 'node:http'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import type { EngineAdapter } from '../proxy/index.ts'
import { recordRollouts } from '../testing/exporter/recorded.ts'
import { knownTokenTexts, openStore } from '../trajectory/index.ts'
import { TokenTextCache } from './token-texts.ts'

it.each([
  ['vLLM', 'prompt'],
  ['SGLang', 'text'],
  ['llama.cpp', 'content'],
])('texts of tokens are learnt from %s, markers of the template among them', async (_, member) => {
  const directory = tempDir()
  const asked: unknown[] = []
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request
      .on('data', (part: Buffer) => parts.push(part))
      .on('end', () => {
        const body = JSON.parse(Buffer.concat(parts).toString()) as { readonly tokens: readonly number[] }
        asked.push(body)
        // A part of a character is not told as it is.
        const text = body.tokens[0] === 3 ? '\ufffd' : `<${body.tokens[0]}>`
        response.end(JSON.stringify({ [member]: text }))
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  const store = await openStore(directory)
  try {
    const [rolloutId = ''] = await recordRollouts(store, [{ reward: 1 }])
    const [session] = await store.recorder.sessions({ rolloutId })
    const engine = { url, apiKey: null, gives: { tokenIds: true, logprobs: true } } as EngineAdapter
    const cache = new TokenTextCache({ store, engine: () => engine, model: () => 'm' })
    await cache.learn(session?.id ?? '')
    const log = await store.recorder.session(session?.id ?? '')
    const ids = new Set(log.segments.flatMap(({ tokens }) => [...tokens]))
    const texts = await knownTokenTexts(store, log)
    const wanted = [...ids].filter((id) => id !== 3).map((id) => [id, `<${id}>`] as const)
    expect(new Map([...texts].map(([id, text]) => [id, Buffer.from(text).toString()]))).toEqual(new Map(wanted))
    expect(asked).toContainEqual({ model: 'm', tokens: [[...ids][0]], skip_special_tokens: false })
    await cache.close()
  } finally {
    await store.close()
    server.close()
  }
})
