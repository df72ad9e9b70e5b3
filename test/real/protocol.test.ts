/**
 * What Paddock asks of vLLM and SGLang, and what the scripted engine answers in their place, read by the classes of their
 * own Python packages.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type EngineAdapter, sglangEngine, vllmEngine } from '../../src/proxy/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { startProxy } from '../proxy/support.ts'
import { converse, startScripted } from '../splice/support.ts'
import { cache } from './vllm.ts'

/** What went to an engine and came back, as protocol.py reads it. */
interface Exchange {
  readonly path: string
  readonly request: string
  readonly reply: string
}

interface Said {
  readonly checked: Readonly<Record<string, number>>
  readonly problems: readonly string[]
}

/** A relay that keeps a copy of each POST that was answered. */
async function tapped(engineUrl: string, kept: Exchange[]): Promise<{ url: string; stop: () => void }> {
  const server = createServer((incoming, outgoing) => {
    const asked: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => asked.push(chunk))
    incoming.on('end', () => {
      const { method, headers, url = '/' } = incoming
      const onward = request(new URL(url, engineUrl), { method, headers }, (reply) => {
        const told: Buffer[] = []
        outgoing.writeHead(reply.statusCode ?? 502, reply.headers)
        reply.on('data', (chunk: Buffer) => {
          told.push(chunk)
          outgoing.write(chunk)
        })
        reply.on('end', () => {
          outgoing.end()
          if (method !== 'POST' || reply.statusCode !== 200) return
          const [path = ''] = url.split('?')
          kept.push({ path, request: Buffer.concat(asked).toString(), reply: Buffer.concat(told).toString() })
        })
      })
      onward.end(Buffer.concat(asked))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Both strategies, whole and streamed, tools and thinking, then weight updates. */
async function use(
  model: string,
  engine: (url: string) => EngineAdapter,
  flags: string[],
): Promise<readonly Exchange[]> {
  const kept: Exchange[] = []
  const scripted = await startScripted(model, ...flags)
  const tap = await tapped(scripted.url, kept)
  try {
    await using paddock = await startProxy(tap.url, { engine: engine(tap.url) })
    for (const strategy of ['record', 'splice'] as const) {
      for (const stream of [false, true]) {
        const session = await paddock.open({ policy: { strategy, history: 'sampled' } })
        await converse(session, ['Tidy the house.', 'And now the cellar.'], { model, stream })
      }
    }
    const order = { timeoutMs: 60_000, version: 'two', requests: [] }
    await paddock.proxy.updateWeights({ ...order, mode: 'keep', cache: 'clear' })
  } finally {
    tap.stop()
  }
  return kept
}

async function read(python: string, wire: string, exchanges: readonly Exchange[]): Promise<Said> {
  const directory = tempDir()
  const file = join(directory, 'exchanges.jsonl')
  await writeFile(file, exchanges.map((exchange) => `${JSON.stringify(exchange)}\n`).join(''))
  const { stdout, stderr, status } = spawnSync(python, ['-B', join(import.meta.dirname, 'protocol.py'), wire, file], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  expect(status, stderr).toBe(0)
  const said = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Said
  console.log(wire, said.checked)
  return said
}

const models = ['scripted-hermes', 'scripted-qwen3']
const python = (name: string): string => join(cache, name, 'bin/python')

describe.skipIf(cache === '' || !existsSync(python('venv')))('the classes of vLLM 0.32.0', () => {
  it('know every member that is asked and answered, but one that older versions read', async () => {
    const exchanges = (await Promise.all(models.map((model) => use(model, (url) => vllmEngine({ url }), [])))).flat()
    const { checked, problems } = await read(python('venv'), 'vllm', exchanges)
    for (const route of ['/v1/chat/completions', '/inference/v1/generate']) {
      for (const side of ['request', 'reply', 'event']) expect(checked[`${route} ${side}`]).toBeGreaterThan(0)
    }
    expect(checked['/v1/chat/completions/render reply']).toBeGreaterThan(0)
    expect(checked['/v1/chat/completions/derender reply']).toBeGreaterThan(0)
    // Before 0.32 the id stood in `token`.
    const route = '/v1/chat/completions/derender request: '
    expect(problems).toEqual([
      `${route}.generate_chunk.choices[].logprobs.content[].token is not known`,
      `${route}.generate_response.choices[].logprobs.content[].token is not known`,
    ])
  })
})

describe.skipIf(cache === '' || !existsSync(python('sglang')))('the classes of SGLang 0.5.23', () => {
  it('know every member that is asked and answered', async () => {
    const ways = [
      ['--wire', 'sglang'],
      ['--wire', 'sglang', '--no-chat-ids'],
    ]
    const engine = (url: string): EngineAdapter => sglangEngine({ url, streamsIds: true })
    const uses = ways.flatMap((flags) => models.map((model) => use(model, engine, flags)))
    const { checked, problems } = await read(python('sglang'), 'sglang', (await Promise.all(uses)).flat())
    for (const part of [
      '/v1/chat/completions event',
      '/tokenize reply',
      '/generate request',
      '/pause_generation request',
    ]) {
      expect(checked[part]).toBeGreaterThan(0)
    }
    expect(problems).toEqual([])
  })

  it('refuse what nobody knows', async () => {
    const request = '{"model":"x","messages":[{"role":"user","content":"x"}],"logprob_counts":1,"temperature":"hot"}'
    const body = (text: string): Exchange => ({ path: '/v1/chat/completions', request: text, reply: '' })
    const wrong = [body(request), body('{"model":"x","messages":[{"role":"user","content":"x"}],"logprob_counts":1}')]
    const { problems } = await read(python('sglang'), 'sglang', wrong)
    expect(problems).toHaveLength(2)
    expect(problems[0]).toContain('.logprob_counts is not known')
    expect(problems[1]).toContain('temperature')
  })
})
